"""Read what the snapshots of a table say of the Kafka Connect sink that loads it.

Each snapshot of the sink has in its summary up to where in its control topic its coordinator had read when it
committed: `kafka.connect.offsets.<control topic>.<group>`, offsets by partition. The sink itself goes by the newest one
that the current snapshot descends from: a snapshot that was rolled back, or of another branch, says nothing.
"""

import json
from collections.abc import Iterator, Mapping
from uuid import UUID

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from makewhole.model.errors import CorruptionError
from makewhole.tables.progress import SinkCommit, SinkGroup

_OFFSETS, _COMMIT, _VALID_THROUGH = (f"kafka.connect.{name}" for name in ("offsets", "commit-id", "valid-through-ts"))
_KNOWN: dict[tuple[UUID, int, bool], tuple[str, ...]] = {}
_MOST_KNOWN = 20_000


def sink_commit(table: Table, sink: SinkGroup) -> SinkCommit:
    """Return the newest commit of a sink, as far back as snapshots are kept.

    Raises:
        CorruptionError: a summary has offsets that are none.
    """
    name = f"{_OFFSETS}.{sink.control_topic}.{sink.name}"
    ancestors = list(_ancestors(table))
    of_sink = [snapshot for snapshot in ancestors if name in _summary(snapshot)]
    is_whole = not ancestors or ancestors[-1].parent_snapshot_id is None
    files = frozenset(
        path for at, each in enumerate(ancestors, 1) for path in _known_files(table, each, at == len(ancestors))
    )
    if not of_sink:
        return SinkCommit(files=files, since=None if is_whole else {})
    newest = _summary(of_sink[0])
    return SinkCommit(
        snapshot_id=of_sink[0].snapshot_id,
        commit_id=newest.get(_COMMIT),
        valid_through=newest.get(_VALID_THROUGH),
        offsets=_offsets(newest[name], of_sink[0]),
        files=files,
        since=None if is_whole else _offsets(_summary(of_sink[-1])[name], of_sink[-1]),
    )


def _ancestors(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and those that it descends from, newest first, as far as they are kept."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def _offsets(text: str, snapshot: Snapshot) -> Mapping[int, int]:
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptionError(
            f"snapshot {snapshot.snapshot_id} has offsets of its sink that cannot be read: how far the sink has come "
            "is not known; look at the summary of the snapshot"
        ) from error


def _known_files(table: Table, snapshot: Snapshot, is_oldest: bool) -> tuple[str, ...]:
    """Return `_files`, read once a process: what a snapshot has does not change, and each chunk of a repair asks."""
    of = (table.metadata.table_uuid, snapshot.snapshot_id, is_oldest)
    if of not in _KNOWN:
        while len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[of] = tuple(_files(table, snapshot, is_oldest))
    return _KNOWN[of]


def _files(table: Table, snapshot: Snapshot, is_oldest: bool) -> Iterator[str]:
    """Yield the names of the data files that a snapshot added; of the oldest one also those that it keeps: the others
    keep files of snapshots before them."""
    for manifest in snapshot.manifests(table.io):
        if is_oldest or manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                yield entry.data_file.file_path
