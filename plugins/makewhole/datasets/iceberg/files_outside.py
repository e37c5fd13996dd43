"""Find the data files of a table that its current snapshot does not list: what took each out, or that none ever had it.

Files below the table's location that no snapshot lists are orphans: of a sink that ended between writing and
committing, of attempts that were killed, of commits that others were faster than, of snapshots that are expired.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from makewhole.datasets.iceberg.warehouse import files_below
from makewhole.tables.rows import OutsideReason

_LEAST_BYTES = 12
"""A file of Parquet has at least its two marks and the length of what it says of itself."""
_DATA_PATH = "write.data.path"
_METADATA = {"/metadata/": (".metadata.json", ".metadata.json.gz"), "/_delta_log/": (".json",), "/.hoodie/": ("",)}
"""By the folders in which tables keep their metadata, how the names of the files there end."""
_S3 = ("s3", "s3a", "s3n")
NO_SPEC = -1
"""The number of no partition spec: what a file has is in it alone."""


@dataclass(frozen=True, kw_only=True)
class FileOutside:
    """A data file that the current snapshot does not list. `snapshot`: the one that took it out (None: it is expired)
    or, of a file whose snapshot is not among those before the current one, that one; `operation`: what that did."""

    file: DataFile
    reason: OutsideReason
    snapshot: int | None = None
    operation: str | None = None
    sequence: int = 0


def same_file(path: str) -> str:
    """Return what the names of one file have in common: writers name files on S3 `s3://` and `s3a://`, local ones with
    and without `file:`, and those on HDFS by one NameNode or by its service."""
    parts = urlsplit(path)
    if parts.scheme in _S3:
        return f"s3://{parts.netloc}{parts.path}"
    if parts.scheme in ("", "file", "hdfs", "viewfs"):
        return f"{parts.scheme.replace('file', '')}:{parts.path}"
    return path


class _SnapshotFiles:
    """The files that the snapshots of a table name, of all snapshots that it still has. `before`: those of an earlier
    commit, of which nothing is read again; none where a snapshot is expired since: its files may be named by no other.
    """

    def __init__(self, table: Table, before: "_SnapshotFiles | None" = None) -> None:
        self.table = table
        self.files: dict[str, DataFile] = {} if before is None else dict(before.files)
        self.added: dict[str, tuple[int, int]] = {} if before is None else dict(before.added)
        self.removed: dict[str, int] = {} if before is None else dict(before.removed)
        self.deletes: set[str] = set() if before is None else set(before.deletes)
        self.manifests: set[str] = set() if before is None else set(before.manifests)
        self.snapshots = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        self.current = _live(table.current_snapshot(), table)
        known = set() if before is None else before.snapshots
        for snapshot in table.metadata.snapshots:
            if snapshot.snapshot_id not in known:
                self._read(snapshot)

    def _read(self, snapshot: Snapshot) -> None:
        for manifest in snapshot.manifests(self.table.io):
            if manifest.manifest_path in self.manifests:
                continue
            self.manifests.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=False):
                self._note(entry.data_file, entry.status, entry.snapshot_id, entry.sequence_number or 0)

    def _note(self, file: DataFile, status: ManifestEntryStatus, snapshot: int | None, sequence: int) -> None:
        if file.content is not DataFileContent.DATA:
            self.deletes.add(same_file(file.file_path))
            return
        self.files.setdefault(file.file_path, file)
        if snapshot is None:
            return
        if status is ManifestEntryStatus.DELETED:
            self.removed[file.file_path] = snapshot
        else:
            self.added.setdefault(file.file_path, (snapshot, sequence))


_KNOWN: dict[str, _SnapshotFiles] = {}
_MOST_KNOWN = 4


def _snapshot_files(table: Table) -> _SnapshotFiles:
    """Return what the snapshots of a table say of files, read once for each commit: each bucket of a window asks, and
    each chunk of a repair, which is a commit."""
    known = _KNOWN.get(table.metadata_location)
    if known is None:
        known = _SnapshotFiles(table, _before(table))
        while len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[table.metadata_location] = known
    return known


def _before(table: Table) -> _SnapshotFiles | None:
    """Return what is known of an earlier commit of a table that still has all its snapshots."""
    snapshots = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    of_table = (
        known
        for known in _KNOWN.values()
        if known.table.metadata.table_uuid == table.metadata.table_uuid and known.snapshots <= snapshots
    )
    return max(of_table, key=lambda known: len(known.snapshots), default=None)


def _live(snapshot: Snapshot | None, table: Table) -> set[str]:
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    return {entry.data_file.file_path for each in manifests for entry in each.fetch_manifest_entry(table.io)}


def _ancestors(table: Table) -> set[int]:
    ancestors, snapshot = set[int](), table.current_snapshot()
    while snapshot is not None:
        ancestors.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return ancestors


def files_outside(table: Table) -> list[FileOutside]:
    """Return the data files that the current snapshot of a table does not list, the newest first; those that no
    snapshot lists last.

    Raises:
        RefusedError: the files of the warehouse cannot be listed.
        OSError, RuntimeError: the storage does not answer.
    """
    known, history = _snapshot_files(table), _ancestors(table)
    kept = [_kept(known, path, history) for path in known.files if path not in known.current]
    kept.sort(key=lambda file: (-file.sequence, file.file.file_path))
    return [*kept, *_orphans(known)]


def _kept(known: _SnapshotFiles, path: str, history: set[int]) -> FileOutside:
    added, sequence = known.added.get(path, (None, 0))
    by, is_elsewhere = known.removed.get(path), added not in history and added in known.snapshots
    is_taken_out = by in history or not is_elsewhere
    snapshot = (by if by in history else None) if is_taken_out else added
    of = None if snapshot is None else known.table.snapshot_by_id(snapshot)
    return FileOutside(
        file=known.files[path],
        reason=OutsideReason.TAKEN_OUT if is_taken_out else OutsideReason.NOT_IN_HISTORY,
        snapshot=snapshot,
        operation=None if of is None or of.summary is None else of.summary.operation.value,
        sequence=sequence,
    )


def _orphans(known: _SnapshotFiles) -> Iterator[FileOutside]:
    """Yield the files below the table's location that no snapshot lists, by name."""
    table = known.table
    names = {same_file(path) for path in known.files} | known.deletes
    own = f"{table.location().rstrip('/')}/"
    places = dict.fromkeys([table.location(), *filter(None, [table.properties.get(_DATA_PATH)])])
    listed = [entry for place in places for entry in files_below(table.io, place)]
    others = tuple({above for path, _ in listed if (above := _table_of_metadata(path)) not in ("", own)})
    by_name = {
        same_file(path): (path, size)
        for path, size in listed
        if path.endswith(".parquet")
        and size >= _LEAST_BYTES
        and not path.startswith(f"{own}metadata/")
        and not _is_of_others(path, own, others)
    }
    for name, (path, size) in sorted(by_name.items()):
        if name not in names:
            yield FileOutside(file=_file(path, size), reason=OutsideReason.UNLISTED)


def _table_of_metadata(path: str) -> str:
    """Return the folder of the table to which a file of metadata belongs; empty: it is none."""
    for folder, ends in _METADATA.items():
        above, is_below, name = path.rpartition(folder)
        if is_below and name.endswith(ends):
            return f"{above}/"
    return ""


def _is_of_others(path: str, own: str, others: tuple[str, ...]) -> bool:
    """Return whether a file lies in another table. A table below which this one lies does not count."""
    return any(path.startswith(other) and not own.startswith(other) for other in others)


def is_of_own_data(table: Table, path: str) -> bool:
    """Return whether a file lies where writers of a table alone put theirs, below its location: files of other datasets
    lie beside it, and into a folder elsewhere other tables may write."""
    own = same_file(f"{table.location().rstrip('/')}/")
    named = [same_file(f"{place.rstrip('/')}/") for place in filter(None, [table.properties.get(_DATA_PATH)])]
    places = [f"{own}data/", *(place for place in named if place.startswith(own))]
    return any(same_file(path).startswith(place) for place in places)


def _file(path: str, size: int) -> DataFile:
    """Return a file as a list of files would have it, as far as its name and its size say."""
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=0,
        file_size_in_bytes=size,
    )
    file.spec_id = NO_SPEC
    return file
