"""Write the key index of a pipeline again, from the snapshots of its windows; where one is gone, from the index itself.
Of a ledger, whose rows may have been purged between two revisions of a window, a run has the keys of all of them: those
that only earlier ones read are from their snapshots, and from the index where one of these is gone. A run to which
neither gives them all is noted as partial: it stands for no snapshot, however often the index is written again.

What was dropped and is still older than the pipeline's `history` is left alone; what was dropped stays so, too, where
nothing has it any more.

Files that are there are left alone: what was written again stands in their place with one commit of the journal.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.buckets import bucket_name, buckets_of, is_in_bucket, number_of_buckets
from makewhole.compute.frames import HASH, REPLAYS, empty
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.config.key_layout import with_layout
from makewhole.journal import windows
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.key_index.runs import (
    IndexedRun,
    IndexedTopic,
    commit_rebuilt,
    first_indexed,
    partial_runs,
    readable_runs,
)
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.retention.file_locks import files_kept
from makewhole.key_index.earlier_revisions import EarlierRevision, StandingRun, with_earlier_revisions
from makewhole.key_index.files import IndexFile, rows_of_file
from makewhole.key_index.window_run import as_read_otherwise, replays_in, run_of_bucket, spans_of, write_bucket
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.text import counted
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_ByBucket = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, kw_only=True)
class RebuiltIndex:
    """The index of a topic that was written again: windows from their snapshots, and from the index as it was."""

    point: str
    from_snapshots: int
    from_index: int
    keys: int


@dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """A snapshot of a revision of a window. `replays`: what compensation wrote to the topic in its ranges."""

    window: Window
    manifest: Mapping[str, Any]
    replays: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class _RunOfWindow:
    """The run of a window (`STORED`) by bucket. `is_whole`: it has the keys of all revisions that are asked."""

    by_bucket: _ByBucket
    is_from_snapshot: bool = True
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True)
class _IndexSources:
    """Names what the index of a topic can be written from. `reading_sha256`: of the file as it is now; `partial`:
    (number, revision) of the windows in whose runs keys of earlier revisions may be missing."""

    storage: Storage
    pipeline: Pipeline
    point: str
    reading_sha256: str
    runs: Sequence[IndexedRun]
    partial: Collection[tuple[int, int]]

    def from_snapshot(self, snapshot: _Snapshot) -> _ByBucket:
        """Return the run of a revision of a window (`STORED`) by bucket, from its snapshot, which was read by the types
        of the revision. Values that were compared as another file said are not known, nor is what passed its filters.

        Raises:
            CorruptionError: a file of the snapshot does not exist.
        """
        window, manifest = snapshot.window, snapshot.manifest
        by_bucket, pipeline = {}, with_layout(self.pipeline, window.key_layout, window.value_types)
        for bucket, files in manifest["files"].items():
            run = run_of_bucket(self.storage, files, snapshot.replays, pipeline, self.point)
            run = run if self.is_read_alike(snapshot) else as_read_otherwise(run)
            by_bucket[bucket] = stored_run(run, window.number)
        return by_bucket

    def is_read_alike(self, snapshot: _Snapshot) -> bool:
        """Return whether the file that a snapshot was read by says what that of now does."""
        return snapshot_manifests.read_with(snapshot.manifest) == self.reading_sha256

    def snapshot_if_readable(self, snapshot: _Snapshot) -> _ByBucket | None:
        """Return the run of a revision by bucket; None where a file of the snapshot does not exist."""
        try:
            return self.from_snapshot(snapshot)
        except CorruptionError:
            return None

    def rows_of_snapshot(self, snapshot: _Snapshot) -> pl.DataFrame:
        """Return the run of a revision (`STORED`) in key order.

        Raises:
            CorruptionError: a file of the snapshot does not exist.
        """
        return _together(self.from_snapshot(snapshot))

    def standing_run(self, number: int) -> StandingRun:
        """Return the run of a window in the index as it is."""
        for run in self.runs:
            if number in run.windows:
                return StandingRun(
                    read=functools.partial(self._rows_in_index, run, number),
                    is_partial=(number, run.revisions[number]) in self.partial,
                )
        return StandingRun()

    def _rows_in_index(self, run: IndexedRun, number: int) -> pl.DataFrame:
        files = (IndexFile(path=path, windows=(number,)) for path in run.files.values())
        rows = (rows_of_file(file, self.storage.sorted_rows(file.path).between(0, None)) for file in files)
        return pl.concat([empty(STORED), *rows]).sort(HASH, maintain_order=True)


def rebuild(journal: PgConnection, storage: Storage, pipeline: Pipeline, reading_sha256: str) -> list[RebuiltIndex]:
    """Write the index of every point of a pipeline that has one again.

    Raises:
        CorruptionError: of some windows neither the snapshots nor the runs can be read; the others were written.
        TransientError: a key of the pipeline is being erased.
    """
    with files_kept(journal, pipeline.name):
        return _rebuild(journal, storage, pipeline, reading_sha256)


def _rebuild(journal: PgConnection, storage: Storage, pipeline: Pipeline, reading_sha256: str) -> list[RebuiltIndex]:
    too_old_before = JudgedWindows(journal=journal, pipeline=pipeline.name).first_within(pipeline.history)
    judged = list(reversed(windows.newest_judged(journal, pipeline.name)))
    rebuilt = []
    for point in pipeline.indexed_points():
        topic = IndexedTopic(pipeline=pipeline.name, point=point)
        runs = readable_runs(journal, topic)
        sources = _IndexSources(
            storage=storage,
            pipeline=pipeline,
            point=point,
            reading_sha256=reading_sha256,
            runs=runs,
            partial=partial_runs(journal, topic),
        )
        # Windows that are as old, and not dropped yet, count: their runs must stand somewhere.
        left_alone_before = min(too_old_before, first_indexed(journal, topic))
        wanted = [window for window in judged if window.number >= left_alone_before]
        rebuilt.append(_rebuild_topic(journal, topic, sources, wanted))
    return rebuilt


def _rebuild_topic(
    journal: PgConnection, topic: IndexedTopic, sources: _IndexSources, judged: Sequence[Window]
) -> RebuiltIndex:
    written: list[IndexedRun] = []
    lost, partial, from_snapshots, known_from = list[int](), list[int](), 0, first_indexed(journal, topic)
    for window in judged:
        snapshots = _snapshots_of_window(journal, sources, window)
        journal.commit()  # writing may take long, and a transaction that is idle keeps vacuum from the whole database
        if not snapshots:
            continue
        run = _run_of_window(sources, snapshots)
        if run is None and window.number >= known_from:
            lost.append(window.number)
        elif run is not None:
            from_snapshots += run.is_from_snapshot
            partial += [] if run.is_whole else [window.number]
            written.append(_written(sources, snapshots[0].window, run.by_bucket))
    commit_rebuilt(journal, topic, written, sources.runs, partial)
    _require_all(topic, lost, partial)
    keys = sum(run.rows for run in written)
    return RebuiltIndex(
        point=topic.point, from_snapshots=from_snapshots, from_index=len(written) - from_snapshots, keys=keys
    )


def _require_all(topic: IndexedTopic, lost: Sequence[int], partial: Sequence[int]) -> None:
    """Raise for windows of which nothing can be read, and for those of which an earlier revision cannot."""
    if lost:
        raise CorruptionError(
            f"{topic.pipeline}: neither the snapshots of {topic.point} nor its runs of the key index can be read for "
            f"{counted(len(lost), 'window')} ({', '.join(map(str, lost))}); the others were written. Restore its files "
            "and rebuild again; a single such window may also be run again"
        )
    if partial:
        raise CorruptionError(
            f"{topic.pipeline}: neither the snapshots that earlier revisions took of {topic.point} nor whole runs of "
            f"the key index can be read for {counted(len(partial), 'window')} ({', '.join(map(str, partial))}); all "
            "windows were written, these with what can be read. Restore the files of the snapshots and rebuild again: "
            "keys of rows that were purged before the newest revision may not be known, and what else has them is "
            "unexpected"
        )


def _snapshots_of_window(journal: PgConnection, sources: _IndexSources, window: Window) -> list[_Snapshot]:
    """Return the snapshot of a point that counts for a window; of a ledger followed by those of its earlier revisions,
    the newest first. None where it has none."""
    manifest = snapshot_manifests.fullest_snapshots(journal, window).get(sources.point)
    if manifest is None:
        return []
    replays = pl.concat([empty(REPLAYS), *replays_in(journal, spans_of(window, sources.point))])
    counting, manifests = windows.load(journal, window.pipeline, window.number, manifest["revision"]), [manifest]
    if not has_log(sources.pipeline.points[sources.point]) and counting.revision > 1:
        manifests += reversed(snapshot_manifests.snapshots_before(journal, counting, sources.point))
    return [
        _Snapshot(
            window=windows.load(journal, window.pipeline, window.number, manifest["revision"]),
            manifest=manifest,
            replays=replays,
        )
        for manifest in manifests
    ]


def _written(sources: _IndexSources, window: Window, run: _ByBucket) -> IndexedRun:
    """Write a window's run, given by bucket."""
    files = {bucket: write_bucket(sources.storage, window, sources.point, bucket, rows) for bucket, rows in run.items()}
    return IndexedRun(
        files={bucket: path for bucket, (path, _) in files.items()},
        rows=sum(keys for _, keys in files.values()),
        revisions={window.number: window.revision},
        windows=(window.number,),
    )


def _run_of_window(sources: _IndexSources, snapshots: Sequence[_Snapshot]) -> _RunOfWindow | None:
    """Return the run of a window, by its snapshots; None where neither the first of them nor the index can be read."""
    newest, standing = sources.snapshot_if_readable(snapshots[0]), sources.standing_run(snapshots[0].window.number)
    if newest is not None and len(snapshots) == 1:
        return _RunOfWindow(by_bucket=newest)
    own = _together(newest) if newest is not None else standing.rows
    if own is None:
        return None
    earlier = [
        EarlierRevision(
            read=functools.partial(sources.rows_of_snapshot, snapshot),
            is_read_alike=sources.is_read_alike(snapshot),
        )
        for snapshot in snapshots[1:]
    ]
    run = with_earlier_revisions(own, earlier, standing)
    count = buckets_of(newest) if newest else number_of_buckets(len(run.rows))
    rows = {name: run.rows.filter(is_in_bucket(name)) for name in (bucket_name(at, count) for at in range(count))}
    return _RunOfWindow(
        by_bucket={name: of_bucket for name, of_bucket in rows.items() if len(of_bucket)},
        is_from_snapshot=newest is not None,
        is_whole=run.missing is None,
    )


def _together(by_bucket: _ByBucket) -> pl.DataFrame:
    """Return the rows of all buckets in key order."""
    return pl.concat([empty(STORED), *by_bucket.values()]).sort(HASH, maintain_order=True)
