"""Stage the files that a chunk puts into a dataset, with the rights of those that they replace or lie beside."""

import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from makewhole.datasets.files.write.chunk_rows import FileChunk
from makewhole.datasets.files.write.commit_files import commit_of, is_emptied
from makewhole.datasets.files.write.kept_beside import FileStep, PlanFolder
from makewhole.datasets.files.write.rewritten import FileChange, new_file, rewritten_file
from makewhole.model.errors import TransientError
from makewhole.model.refusal import Refusal, RefusalCode

OTHER_RIGHTS = Refusal(
    RefusalCode.UNFIT,
    "the owner, group, mode and ACL of the files of this dataset cannot be given to a file by the user that makewhole "
    "runs as, and those who read it might not any more. Run makewhole as their owner, in their group, or as a "
    "superuser; or have the writer load the rows again",
)


@dataclass(kw_only=True)
class Staging:
    """The files of a chunk, as they are staged. `refused`: actions of files that could not have the rights that they
    need."""

    rows: FileChunk
    kept: PlanFolder
    mark: str
    refused: dict[int, Refusal] = field(default_factory=dict)
    staged: list[str] = field(default_factory=list)

    def steps(self) -> Iterator[FileStep]:
        """Stage each file; yield what is done with it."""
        yield from self._new_files()
        yield from self._changed_files()

    def discard(self) -> None:
        """Remove what was staged: the chunk is decided again, without what is refused."""
        for staged in self.staged:
            self.kept.store.remove(staged)

    def _new_files(self) -> Iterator[FileStep]:
        rows = self.rows
        for path, added in sorted(rows.added.items()):
            whole = pa.concat_tables(added, promote_options="default")
            stored = whole.drop_columns([name for name in rows.source.folder_columns if name in whole.column_names])
            content, seqs, beside = new_file(rows.source, stored, self.mark), rows.added_seqs[path], self._beside(path)
            yield FileStep(path=path, before=None, staged=self._stage(content, beside, seqs), seqs=tuple(sorted(seqs)))
            commit = commit_of(rows.marker, path)
            if commit is not None:
                name, content = commit
                yield FileStep(path=name, before=None, staged=self._stage(content, beside, seqs), seqs=())

    def _changed_files(self) -> Iterator[FileStep]:
        rows = self.rows
        for data, changed in sorted(rows.changed.items(), key=lambda pair: pair[0].path):
            seqs = tuple(sorted(changed.seqs))
            if is_emptied(rows.source.store, data, changed):
                commit = commit_of(rows.marker, data.path)
                entry = None if commit is None else rows.source.store.find(commit[0])
                if entry is not None:  # no reader may look for a file that is gone
                    yield FileStep(path=entry.path, before=entry, staged=None, seqs=())
                yield FileStep(path=data.path, before=data.file, staged=None, seqs=seqs)
                continue
            change = FileChange(removed=frozenset(changed.removed), updated=changed.updated)
            content = rewritten_file(rows.source.store, data, change, self.mark)
            staged = self._stage(content, data.path, seqs, is_new=False)
            yield FileStep(path=data.path, before=data.file, staged=staged, seqs=seqs)

    def _stage(self, content: bytes, like: str, seqs: Collection[int], *, is_new: bool = True) -> str:
        """Stage a file of actions, with the rights of another one; return its path.

        Raises:
            TransientError: that one went.
        """
        staged, store = self.kept.stage(self.rows.id, len(self.staged), content), self.kept.store
        self.staged.append(staged)
        try:
            if not store.give_rights(staged, of=like, is_new=is_new):
                self.refused |= dict.fromkeys(seqs, OTHER_RIGHTS)
        except FileNotFoundError as error:
            raise TransientError(f"{like} of {store.root} went while a chunk was decided; try again") from error
        return staged

    def _beside(self, path: str) -> str:
        """Return the newest file in the folder of a new one; where that has none, the newest of the dataset."""
        files, folder = self.rows.source.newest_first, posixpath.dirname(path)
        return next((data.path for data in files if posixpath.dirname(data.path) == folder), files[0].path)
