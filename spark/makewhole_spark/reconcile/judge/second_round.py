"""Ask for a second round of a bucket, and keep for it what the first one found.

Some keys can only be decided by more than a first round has: by the rest of a topic's log, and by the certified windows
in which missing keys have records. The answer of a bucket names the keys, the driver finds out about those of all
buckets, and a bucket of which that says anything is judged again: `task.is_second_round`, with what was found in
`task.known_since`. What was clean in the first round stays out of it, unless a log that was read has more copies of
such keys: then it begins with the first pass again. It is asked in two turns: by the logs in the first round alone, and
by the certified windows until these are known (`knows_certified`), be it after the first round or after the logs were
read.

What a second round knows is used where a first round has nothing:

- `tails` as copies outside the slice (`copies_outside`, `first_pass`) and as open copies (`pending`); `partial_tails`
  as a log of which a part is gone (`BucketTask.log_of`); `tail_records`, `unread_tails` and
  `compacted_tails` for tombstones (`erased_keys`).
- `compacted` by the marks, in the place of what the windows alone say of compaction (`BucketTask.compacted_at`).
- `certified` by the marks of `certified` and `file_changes`, and `following` and `around` by the former.
- `kept` in the place of a first pass (`first_pass`), and `looked_up` in the place of look-ups (`look_up_again`).
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.key_index.files import rows_of_keys
from makewhole.lake.storage import Storage
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Verdict
from makewhole_spark.reconcile.bucket.answer import KeptExceptions
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.erased_keys import may_be_erased
from makewhole_spark.reconcile.judge.file_changes import windows_of_left
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.gather_copies import Gathered
from makewhole_spark.reconcile.judge.marks import Marked
from makewhole_spark.reconcile.judge.verdicts import has_verdict


def ask_second_round(
    task: BucketTask,
    first: FirstPass,
    looked_up: Gathered,
    judged: pl.DataFrame,
    repeated_from: pl.DataFrame,
    marked: Marked,
) -> dict[str, Any]:
    """Write what a second round is asked for, and what it takes from this one; return it as the answer names it.

    The logs are asked by the verdicts before the marks (`judged`), whatever a mark makes of a key. The windows are
    asked by those after them, and by what was missing or repeated when they could have said something of it.
    """
    of_logs = {} if task.is_second_round else _ask_logs(task, first, _rows_to_keep(task, looked_up), judged)
    if task.known_since.knows_certified:
        return of_logs
    return of_logs | _ask_windows(task, marked, looked_up.known.source, repeated_from)


# The rest of the logs


def _ask_logs(
    task: BucketTask, first: FirstPass, target_rows: pl.DataFrame | None, judged: pl.DataFrame
) -> dict[str, Any]:
    """Write the keys to look for in the logs of topics, those whose tombstones must be put in order with their records,
    and, for a second round to begin with, the exceptions and the target's rows (None: none are kept)."""
    storage, erasing = task.context.storage, task.elsewhere.erasures.erasing
    wanted, late = _write_wanted(task, judged)
    to_order = _write_hashes(storage, task.folder("wanted"), dict.fromkeys(erasing, may_be_erased(judged)))
    asked: dict[str, Any] = {"wanted": wanted, "late_wanted": late, "to_order": to_order}
    if wanted or to_order:
        asked["kept"] = _keep_exceptions(storage, task.folder("exceptions"), first)
    if target_rows is not None and wanted:
        asked["looked_up"] = storage.write_parquet(task.folder("looked_up"), target_rows)
    return asked


def _rows_to_keep(task: BucketTask, looked_up: Gathered) -> pl.DataFrame | None:
    """Return the rows that a second round is to hold to the log, which is read after them: under upsert those that were
    looked up, and of rows that are made of many records all."""
    if task.hop.group is not None:
        return looked_up.known.target
    return looked_up.target_rows if task.is_upsert else None


def _write_wanted(task: BucketTask, judged: pl.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Write the hashes that must be looked for in the rest of a topic's log; return the files by point: of all of them,
    and of those whose row at the other end came late: with a time before the window's, or without one."""
    hop, others = task.hop, [other.hop.source for other in task.elsewhere.other_sources]
    of_target: tuple[Verdict, ...] = (Verdict.MISSING,)
    of_source: tuple[Verdict, ...] = (Verdict.UNEXPECTED,)
    if task.is_upsert:  # of several rows the one of the latest version stays, which may be in the tail
        of_target = (Verdict.MISSING, Verdict.MISMATCHED, Verdict.UNEXPECTED)
        of_source = (*of_target, Verdict.DUPLICATE)
    verdicts = {hop.target: of_target, **dict.fromkeys(others, (Verdict.UNEXPECTED,)), hop.source: of_source}
    if task.hop.group is not None:  # a record that comes later makes any sum incomplete
        keys = {hop.source: judged.filter(~has_verdict(Verdict.DUPLICATE))}
        return _write_hashes(task.context.storage, task.folder("wanted"), keys), {}
    set_back = ~pl.col("in_source") & has_verdict(*DIFFERING)
    wanted = {
        point: judged.filter(has_verdict(*of_point) | (set_back & (point in (hop.source, *others))))
        for point, of_point in verdicts.items()
        if task.is_topic(point)
    }
    start = task.context.window.start
    came_late = pl.lit(False) if start is None else (pl.col("time") < start).fill_null(True)
    late = {
        point: frame.filter(came_late)
        for point, frame in wanted.items()
        if not task.is_topic(hop.source if point == hop.target else hop.target)
    }
    storage, folder = task.context.storage, task.folder("wanted")
    return _write_hashes(storage, folder, wanted), _write_hashes(storage, folder, late)


def _write_hashes(storage: Storage, folder: str, keys: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    return {point: storage.write_parquet(folder, frame.select(HASH)) for point, frame in keys.items() if len(frame)}


def _keep_exceptions(storage: Storage, folder: str, first: FirstPass) -> KeptExceptions | None:
    """Write what the first pass found; None where it took out nothing."""
    if not first.number:
        return None
    source, target = (storage.write_parquet(folder, frame) for frame in (first.source, first.target))
    return KeptExceptions(
        clean=first.number,
        digest=first.digest,
        source_rows=first.source_rows,
        target_rows=first.target_rows,
        source=source,
        target=target,
    )


# The certified windows


def _ask_windows(task: BucketTask, marked: Marked, source: pl.DataFrame, repeated_from: pl.DataFrame) -> dict[str, Any]:
    """Name the windows that may have seen keys on both sides: those with records of keys that a store lacks now, those
    of which a repeated key is, and those with the version by which a key left the filter. Write the keys of whose rows
    windows before may have met some, and those that a revision of this window handed over.

    Of the first all keys count that were missing when the windows were asked, also those of which this window's own
    revision or a gap in a log says something, and unexpected ones that the filter excludes: what is said of a key must
    not depend on whether another one gives its bucket a second round.
    """
    left = windows_of_left(task, marked.judged, source)["window"].to_list()
    keys = pl.concat([marked.seen.missing, marked.excluded])
    repeated = frozenset(repeated_from["window"])
    numbers = {*left} - {task.context.window.number} | repeated | _recorded_in(task, keys)
    asked: dict[str, Any] = {"recorded_in": frozenset(numbers), "repeated_from": repeated}
    maybe_met = marked.seen.maybe_met
    if len(maybe_met):
        asked["maybe_met"] = task.context.storage.write_parquet(task.folder("untraced"), maybe_met)
        asked["maybe_met_since"] = maybe_met["met_from"].min()
    if len(marked.seen.handed_on):
        asked["handed_on"] = task.context.storage.write_parquet(task.folder("handed_on"), marked.seen.handed_on)
    return asked


def _recorded_in(task: BucketTask, keys: pl.DataFrame) -> set[int]:
    """Return the numbers of the other windows in which keys (`HASHES`) have records that a store lacks now. Under
    upsert none: what they saw is another version."""
    if not can_look_up(task.context.pipeline.points[task.hop.target]) or task.is_upsert:
        return set()
    index = task.source.index.copies
    return {*rows_of_keys(task.context.storage, index.every, keys)["window"]}
