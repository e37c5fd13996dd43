"""Gather what earlier revisions read of a ledger: their snapshots, and the run that has counted until now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from makewhole.compute.buckets import shares_keys
from makewhole.journal.key_index.runs import IndexedTopic, partial_runs
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.snapshot_manifests import FILTERS, VALUES_OF
from makewhole.key_index.files import IndexFile
from makewhole.model.points import has_log
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class RevisionFiles:
    """The files of a snapshot by bucket. Of one that was not `is_read_alike` the values are not those that this window
    compares, or its rows were held against other filters."""

    files: Mapping[str, Sequence[str]]
    is_read_alike: bool

    def in_bucket(self, bucket: str) -> "RevisionFiles":
        """Return those that may have keys of a bucket."""
        return replace(self, files={name: paths for name, paths in self.files.items() if shares_keys(name, bucket)})


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """The snapshots of earlier revisions of a window, the newest first, and the `standing` run of the key index, by
    bucket; None: the index does not have the window. `is_merged`: it has rows of other windows, too; `is_partial`: keys
    of an earlier revision may be missing in it."""

    snapshots: tuple[RevisionFiles, ...] = ()
    by_bucket: Mapping[str, IndexFile] | None = None
    is_merged: bool = False
    is_partial: bool = False

    @property
    def buckets(self) -> list[str]:
        """The names of all buckets, of whatever numbers."""
        return [*(self.by_bucket or {}), *(name for snapshot in self.snapshots for name in snapshot.files)]

    @property
    def standing(self) -> list[IndexFile] | None:
        """The files of the standing run."""
        return None if self.by_bucket is None else [*self.by_bucket.values()]

    def in_bucket(self, bucket: str) -> "EarlierRuns":
        """Return what may have keys of a bucket."""
        return replace(
            self,
            snapshots=tuple(snapshot.in_bucket(bucket) for snapshot in self.snapshots),
            by_bucket=None
            if self.by_bucket is None
            else {name: file for name, file in self.by_bucket.items() if shares_keys(name, bucket)},
        )


def earlier_runs(neighbours: NeighbouringWindows, point: str) -> EarlierRuns:
    """Return what earlier revisions of the window read of a ledger; of a topic nothing."""
    window = neighbours.context.window
    if has_log(neighbours.context.pipeline.points[point]) or window.last_before == 0:
        return EarlierRuns()
    snapshots = _snapshots(neighbours, point)
    for run in neighbours.standing_runs(point):
        if window.number in run.windows:
            topic = IndexedTopic(pipeline=window.pipeline, point=point)
            return EarlierRuns(
                snapshots=snapshots,
                by_bucket={name: IndexFile(path=path, windows=(window.number,)) for name, path in run.files.items()},
                is_merged=len(run.revisions) > 1,
                is_partial=(window.number, run.revisions[window.number]) in partial_runs(neighbours.journal, topic),
            )
    return EarlierRuns(snapshots=snapshots)


def _snapshots(neighbours: NeighbouringWindows, point: str) -> tuple[RevisionFiles, ...]:
    """Return the snapshots of earlier revisions, the newest first, without those whose files are another one's."""
    own = neighbours.manifests[point]
    snapshots = list[RevisionFiles]()
    manifests = snapshot_manifests.snapshots_before(neighbours.journal, neighbours.context.window, point)
    for manifest in reversed(manifests):
        snapshot = RevisionFiles(files=manifest["files"], is_read_alike=_is_read_alike(manifest, own))
        if manifest["files"] != own["files"] and snapshot not in snapshots:
            snapshots.append(snapshot)
    return tuple(snapshots)


def _is_read_alike(manifest: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    return all(manifest.get(name) == own.get(name) for name in (VALUES_OF, FILTERS))
