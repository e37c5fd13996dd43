"""Find the rows of data files that an earlier view has seen for certain, whatever it had to leave out."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from makewhole.datasets.iceberg.data_files import ListedFile
from makewhole.datasets.iceberg.held_view import SnapshotView


class CertainFiles:
    """The data files that a view has read, with the deletes that it held them against."""

    def __init__(self, files: Iterable[ListedFile] = ()) -> None:
        self._deletes = {(listed.file.file_path, listed.sequence): _deletes_of(listed) for listed in files}

    def __contains__(self, listed: ListedFile) -> bool:
        """Return whether all rows that a file has were there then: a delete that was taken back since brings rows."""
        then = self._deletes.get((listed.file.file_path, listed.sequence))
        return then is not None and then <= _deletes_of(listed)


def _deletes_of(listed: ListedFile) -> set[str]:
    return {delete.file_path for delete in listed.deletes}


def files_by_commits(before: SnapshotView, now: Sequence[ListedFile], without: Collection[str]) -> list[ListedFile]:
    """Return those of the data files of now that an earlier view, whose own lists are gone, has read by the numbers of
    their commits. `without`: the files that the view of now leaves out.

    There are none where it left a file out that is not known any more: that was a list of files, or its rows are in
    another file since, and nothing tells in which; and none where it was of the table's first format, in which commits
    have no numbers.
    """
    if not before.sequence or not {*without}.union(*(listed.paths for listed in now)).issuperset(before.without):
        return []
    older = [listed for listed in now if listed.sequence <= before.sequence and listed.paths.isdisjoint(before.without)]
    return [replace(listed, deletes=()) for listed in older]
