"""Write the key index of a pipeline again, from the snapshots of its windows; where one is gone, from the index itself.

What was dropped and is still older than the pipeline's `history` is left alone; what was dropped stays so, too, where
nothing has it any more.

Files that are there are left alone: what was written again stands in their place with one commit of the journal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.indexed_keys.former_readings import NOT_KNOWN, NUMBERED, OF_HOPS
from makewhole.compute.indexed_keys.hop_filters import with_noted_filters
from makewhole.compute.indexed_keys.stored_runs import run_of
from makewhole.config.key_layout import with_layout
from makewhole.journal import windows
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, commit_rebuilt, first_indexed, readable_runs
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.retention.file_locks import files_kept
from makewhole.key_index.files import IndexFile, rows_of_file
from makewhole.key_index.window_run import replays_in, run_of_bucket, spans_of, write_bucket
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_VALUES = ("row_hash", "last_row_hash")


@dataclass(frozen=True, kw_only=True)
class RebuiltIndex:
    """The index of a topic that was written again: windows from their snapshots, and from the index as it was."""

    point: str
    from_snapshots: int
    from_index: int
    keys: int


@dataclass(frozen=True, kw_only=True)
class _IndexSources:
    """Names what the index of a topic can be written from. `reading_sha256`: of the file as it is now."""

    storage: Storage
    pipeline: Pipeline
    point: str
    reading_sha256: str
    runs: Sequence[IndexedRun]

    def from_snapshot(
        self, window: Window, manifest: Mapping[str, Any], replays: pl.DataFrame
    ) -> dict[str, pl.DataFrame]:
        """Return the run of a window by bucket, from its snapshot, which was read by the types of its revision. Values
        that were compared as another file said are not known, nor is what passed its filters.

        Raises:
            CorruptionError: a file of the snapshot does not exist.
        """
        by_bucket, pipeline = {}, with_layout(self.pipeline, window.key_layout, window.value_types)
        for bucket, files in manifest["files"].items():
            run = run_of_bucket(self.storage, files, replays, pipeline, self.point)
            if snapshot_manifests.read_with(manifest) != self.reading_sha256:
                unknown = [name for name in _VALUES if name in run.columns]
                run = run.with_columns(pl.lit(None, dtype=pl.UInt64).alias(name) for name in unknown)
                run = run.with_columns(pl.lit(NOT_KNOWN, dtype=pl.UInt64).alias(NUMBERED))
                run = run.drop(OF_HOPS, strict=False)
                run = with_noted_filters(run, None)
            by_bucket[bucket] = run
        return by_bucket

    def from_index(self, number: int) -> dict[str, pl.DataFrame] | None:
        """Return the run of a window by bucket, from the index as it is; None where it does not have the window.

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
                return {bucket: run_of(of_bucket) for bucket, of_bucket in rows.items() if len(of_bucket)}
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
    lost, from_snapshots, known_from = [], 0, first_indexed(journal, topic)
    for window in judged:
        manifest = snapshot_manifests.fullest_snapshots(journal, window).get(topic.point)
        if manifest is None:
            continue
        spans = spans_of(window, topic.point)
        replays = pl.concat([empty(REPLAYS), *replays_in(journal, spans)])
        window = windows.load(journal, topic.pipeline, window.number, manifest["revision"])
        journal.commit()  # writing may take long, and a transaction that is idle keeps vacuum from the whole database
        run, is_snapshot = _run_of_window(sources, window, manifest, replays)
        if run is None and window.number >= known_from:
            lost.append(str(window.number))
        elif run is not None:
            from_snapshots += is_snapshot
            written.append(_written(sources, window, run))
    commit_rebuilt(journal, topic, written, sources.runs)
    if lost:
        raise CorruptionError(
            f"{topic.pipeline}: neither the snapshots of {topic.point} nor its runs of the key index can be read for "
            f"{counted(len(lost), 'window')} ({', '.join(lost)}); the others were written. Restore its files and "
            "rebuild again; a single such window may also be run again"
        )
    keys = sum(run.rows for run in written)
    return RebuiltIndex(
        point=topic.point, from_snapshots=from_snapshots, from_index=len(written) - from_snapshots, keys=keys
    )


def _written(sources: _IndexSources, window: Window, run: Mapping[str, pl.DataFrame]) -> IndexedRun:
    """Write a window's run, given by bucket."""
    files = {bucket: write_bucket(sources.storage, window, sources.point, bucket, rows) for bucket, rows in run.items()}
    return IndexedRun(
        files={bucket: path for bucket, (path, _) in files.items()},
        rows=sum(keys for _, keys in files.values()),
        revisions={window.number: window.revision},
        windows=(window.number,),
    )


def _run_of_window(
    sources: _IndexSources, window: Window, manifest: Mapping[str, Any], replays: pl.DataFrame
) -> tuple[dict[str, pl.DataFrame] | None, bool]:
    """Return the run of a window by bucket, and whether it is from the snapshot; None where nothing can be read."""
    try:
        return sources.from_snapshot(window, manifest, replays), True
    except CorruptionError:
        pass
    try:
        return sources.from_index(window.number), False
    except CorruptionError:
        return None, False
