"""Write the key index of a pipeline again, from the snapshots of its windows; where one is gone, from the index itself.
Of a ledger, whose rows may have been purged between two revisions of a window, a run has the keys of all of them: those
that only earlier ones read are from the index, or from their snapshots where it cannot be read.

What was dropped and is still older than the pipeline's `history` is left alone; what was dropped stays so, too, where
nothing has it any more.

Files that are there are left alone: what was written again stands in their place with one commit of the journal.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.buckets import bucket_name, buckets_of, is_in_bucket
from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.indexed_keys.former_readings import NOT_KNOWN, NUMBERED, OF_HOPS
from makewhole.compute.indexed_keys.hop_filters import with_noted_filters
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.config.key_layout import with_layout
from makewhole.journal import windows
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, commit_rebuilt, first_indexed, readable_runs
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.retention.file_locks import files_kept
from makewhole.key_index.files import IndexFile, rows_of_file
from makewhole.key_index.window_run import replays_in, run_of_bucket, spans_of, with_rows_of_other_keys, write_bucket
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.text import counted
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_VALUES = ("row_hash", "last_row_hash")
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
    """Names what the index of a topic can be written from. `reading_sha256`: of the file as it is now."""

    storage: Storage
    pipeline: Pipeline
    point: str
    reading_sha256: str
    runs: Sequence[IndexedRun]

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
            if snapshot_manifests.read_with(manifest) != self.reading_sha256:
                unknown = [name for name in _VALUES if name in run.columns]
                run = run.with_columns(pl.lit(None, dtype=pl.UInt64).alias(name) for name in unknown)
                run = run.with_columns(pl.lit(NOT_KNOWN, dtype=pl.UInt64).alias(NUMBERED))
                run = run.drop(OF_HOPS, strict=False)
                run = with_noted_filters(run, None)
            by_bucket[bucket] = stored_run(run, window.number)
        return by_bucket

    def from_index(self, number: int) -> _ByBucket | None:
        """Return the run of a window (`STORED`) by bucket, from the index as it is; None where it does not have the
        window.

        Raises:
            CorruptionError: a file of the index does not exist.
        """
        for run in self.runs:
            if number in run.windows:
                files = {bucket: IndexFile(path=path, windows=(number,)) for bucket, path in sorted(run.files.items())}
                rows = {
                    bucket: rows_of_file(file, self.storage.sorted_rows(file.path).between(0, None))
                    for bucket, file in files.items()
                }
                return {bucket: of_bucket for bucket, of_bucket in rows.items() if len(of_bucket)}
        return None


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
            storage=storage, pipeline=pipeline, point=point, reading_sha256=reading_sha256, runs=runs
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
    lost, partial, from_snapshots, known_from = list[str](), list[str](), 0, first_indexed(journal, topic)
    for window in judged:
        snapshots = _snapshots_of_window(journal, sources, window)
        journal.commit()  # writing may take long, and a transaction that is idle keeps vacuum from the whole database
        if not snapshots:
            continue
        run = _run_of_window(sources, snapshots)
        if run is None and window.number >= known_from:
            lost.append(str(window.number))
        elif run is not None:
            from_snapshots += run.is_from_snapshot
            partial += [] if run.is_whole else [str(window.number)]
            written.append(_written(sources, snapshots[0].window, run.by_bucket))
    commit_rebuilt(journal, topic, written, sources.runs)
    _require_all(topic, lost, partial)
    keys = sum(run.rows for run in written)
    return RebuiltIndex(
        point=topic.point, from_snapshots=from_snapshots, from_index=len(written) - from_snapshots, keys=keys
    )


def _require_all(topic: IndexedTopic, lost: Sequence[str], partial: Sequence[str]) -> None:
    """Raise for windows of which nothing can be read, and for those of which an earlier revision cannot."""
    if lost:
        raise CorruptionError(
            f"{topic.pipeline}: neither the snapshots of {topic.point} nor its runs of the key index can be read for "
            f"{counted(len(lost), 'window')} ({', '.join(lost)}); the others were written. Restore its files and "
            "rebuild again; a single such window may also be run again"
        )
    if partial:
        raise CorruptionError(
            f"{topic.pipeline}: neither the snapshots that earlier revisions took of {topic.point} nor its runs of the "
            f"key index can be read for {counted(len(partial), 'window')} ({', '.join(partial)}); all windows were "
            "written, these by their newest revision. Restore the files and rebuild again: keys of rows that were "
            "purged from it before that revision are not known, and what else has them is unexpected"
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
    newest = _if_readable(functools.partial(sources.from_snapshot, snapshots[0]))
    if newest is not None and len(snapshots) == 1:
        return _RunOfWindow(by_bucket=newest)
    of_index = _if_readable(functools.partial(sources.from_index, snapshots[0].window.number))
    if newest is None:
        return None if of_index is None else _RunOfWindow(by_bucket=of_index, is_from_snapshot=False)
    if of_index is not None:
        return _RunOfWindow(by_bucket=_with_other_keys(newest, of_index))
    run, is_whole = newest, True
    for snapshot in snapshots[1:]:
        earlier = _if_readable(functools.partial(sources.from_snapshot, snapshot))
        run, is_whole = _with_other_keys(run, earlier or {}), is_whole and earlier is not None
    return _RunOfWindow(by_bucket=run, is_whole=is_whole)


def _if_readable(read: Callable[[], _ByBucket | None]) -> _ByBucket | None:
    try:
        return read()
    except CorruptionError:
        return None


def _with_other_keys(run: _ByBucket, other: _ByBucket) -> _ByBucket:
    """Add the keys of another run that a run lacks, each with its rows."""
    if not run or not other:
        return run or other
    rows, count = pl.concat(other.values()), buckets_of(run)
    both = {
        name: with_rows_of_other_keys(run.get(name, empty(STORED)), rows.filter(is_in_bucket(name)))
        for name in (bucket_name(at, count) for at in range(count))
    }
    return {name: of_bucket for name, of_bucket in both.items() if len(of_bucket)}
