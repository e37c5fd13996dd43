"""List the data files of a snapshot: each as often as the table lists it, with the deletes that apply to it."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.expressions import BooleanExpression
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import ManifestGroupPlanner, Table
from pyiceberg.table.snapshots import Snapshot

from makewhole.datasets.iceberg.predicates import ALWAYS_TRUE
from makewhole.model.errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A data file as a snapshot lists it, for the `listing`th time (0 the first): its rows are there as often as it is
    listed. `added_in`: the snapshot that brought it; `sequence`: the number of its commit. `groups`: the numbers of the
    groups of rows that are read of it; None: all.

    It travels to the task that reads it.
    """

    file: DataFile
    deletes: tuple[DataFile, ...]
    listing: int
    added_in: int | None
    sequence: int
    groups: tuple[int, ...] | None = None

    @property
    def paths(self) -> set[str]:
        """The files without which its rows are not known: itself, and its deletes."""
        return {self.file.file_path, *(delete.file_path for delete in self.deletes)}

    def around_number(self, location: str) -> tuple[str, str]:
        """Return what stands before and behind the number of a row in the place of each: the file, inside the table's
        own location, and the snapshot that brought it."""
        path = self.file.file_path.removeprefix(f"{location.rstrip('/')}/")
        again = f", listing {self.listing + 1}" if self.listing else ""
        return f"{path}:", f" (snapshot {self.added_in}{again})"


def listed_files(
    table: Table,
    snapshot: Snapshot | None,
    name: str,
    where: BooleanExpression | None = None,
    *,
    without: Collection[str] = (),
    gone: list[ManifestFile] | None = None,
) -> list[ListedFile]:
    """Return the data files of a snapshot in a fixed order; only those that may have rows for which `where` holds, and
    those of no manifest among the paths `without`. A manifest of data files that is gone is added to `gone`.

    Raises:
        RefusedError: it has deletes that cannot be applied.
        FileNotFoundError: the list of its manifests is gone, or one that lists deletes, or any without such a list.
    """
    if snapshot is None:
        return []
    left = [manifest for manifest in snapshot.manifests(table.io) if manifest.manifest_path not in without]
    while True:
        try:
            return _files_of(table, left, name, where)
        except FileNotFoundError as error:
            of_data = [manifest for manifest in left if manifest.content is ManifestContent.DATA]
            lost = [manifest for manifest in of_data if manifest.manifest_path == error.filename]
            if gone is None or not lost:
                raise
            gone += lost
            left = [manifest for manifest in left if manifest not in lost]


def _files_of(
    table: Table, manifests: Sequence[ManifestFile], name: str, where: BooleanExpression | None
) -> list[ListedFile]:
    _require_known_deletes(table, manifests, name)
    entries: dict[int, ManifestEntry] = {}

    def note(entry: ManifestEntry) -> bool:
        entries[id(entry.data_file)] = entry
        return True

    planner = ManifestGroupPlanner(table.metadata, table.io, ALWAYS_TRUE if where is None else where)
    tasks = list(planner.plan_files(manifests, note))
    tasks.sort(key=lambda task: (entries[id(task.file)].sequence_number or 0, task.file.file_path))
    return list(_numbered([(task.file, tuple(task.delete_files), entries[id(task.file)]) for task in tasks]))


def _numbered(files: Sequence[tuple[DataFile, tuple[DataFile, ...], ManifestEntry]]) -> Iterator[ListedFile]:
    before = Counter[str]()
    for file, deletes, entry in files:
        yield ListedFile(
            file=file,
            deletes=tuple(sorted(deletes, key=lambda delete: delete.file_path)),
            listing=before[file.file_path],
            added_in=entry.snapshot_id,
            sequence=entry.sequence_number or 0,
        )
        before[file.file_path] += 1


def _require_known_deletes(table: Table, manifests: Sequence[ManifestFile], name: str) -> None:
    for manifest in manifests:
        if manifest.content is not ManifestContent.DELETES:
            continue
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.content == DataFileContent.EQUALITY_DELETES:
                raise RefusedError(
                    f"{name} has equality deletes (a sink that upserts writes them), and the library that reads it "
                    "cannot apply them: rows would be seen that are deleted. Rewrite its data files (Spark: "
                    f"`call system.rewrite_data_files('{name}')` with `delete-file-threshold` 1), or compare a "
                    "table that is written with copy-on-write"
                )
