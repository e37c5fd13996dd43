"""Find the keys of which the windows before met rows in a table without a record: a later window has the record, and
sees only the rows of its own times.

A row comes before its record by no more than `late` and the time that a key may wait: the windows of that time are
asked, whose rows must all be known. Of older rows without a record some are remembered for ever: those from before the
baseline, whose records are gone, and those that were reported as unexpected. A record of any of them may be sent again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from makewhole.compute.buckets import bucket_name, files_of_bucket
from makewhole.compute.keys import split_hex
from makewhole.journal.history import older_results
from makewhole.journal.history.older_results import UnmatchedRows
from makewhole.journal.key_history import unexpected_keys
from makewhole.journal.results import hop_results, slice_counts
from makewhole.model.hops import Hop
from makewhole.model.points import can_look_up
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.other_windows import MetAlone
from makewhole_spark.reconcile.bucket.task import has_slices
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

_Files = Mapping[str, str]
_NAMED_MOST = 100  # keys of a window: of more, its files are asked


@dataclass(frozen=True, kw_only=True)
class MetBefore:
    """Holds what the windows before met without a record, by bucket: files of keys, and keys that were reported
    (`named`). Rows of records with a time before `since` may have been met by older windows (None: there are none)."""

    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    named: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    since: datetime | None = None

    def in_bucket(self, bucket: str) -> MetAlone:
        """Return what is known of a bucket."""
        return MetAlone(
            files=files_of_bucket(self.files, bucket),
            named=tuple(self.named.get(bucket, ())),
            since=self.since,
        )


def met_alone(neighbours: NeighbouringWindows, hop: Hop) -> MetBefore | None:
    """Return the keys that the windows before met without a record; None where not all of them are known: then a slice
    does not tell whether a key has other rows."""
    pipeline, window = neighbours.context.pipeline, neighbours.context.window
    if not has_slices(pipeline, hop):
        return None
    if window.start is None:
        return MetBefore()  # the window has the rows of all times
    windows = lookback_windows(neighbours.recent, window, pipeline.late + pipeline.pending_max_age)
    if not windows or _has_table_as_source(neighbours, hop):
        return None
    older = older_results.unmatched_rows(neighbours.journal, windows[0], hop.name)
    asked = [window for window in older if not window.unnamed and window.named <= _NAMED_MOST]
    reported = _reported_by(neighbours, hop, asked)
    of_windows = [rows.files for rows in older if rows.number not in reported]
    of_windows += [_of_window(neighbours, hop, earlier) for earlier in windows]
    if None in of_windows:
        return None
    files: dict[str, list[str]] = {}
    for of_window in of_windows:
        for bucket, path in (of_window or {}).items():
            files.setdefault(bucket, []).append(path)
    return MetBefore(
        files=files,
        named=_by_bucket(neighbours, [key for keys in reported.values() for key in keys]),
        since=None if windows[0].start is None else windows[0].start + pipeline.late,
    )


def _has_table_as_source(neighbours: NeighbouringWindows, hop: Hop) -> bool:
    """Return whether a table brings keys to the place of the hop's target: no index says which of them it had
    before."""
    pipeline = neighbours.context.pipeline
    return any(can_look_up(pipeline.points[leading.source]) for leading in pipeline.hops_into(hop.target))


def lookback_windows(earlier: Sequence[Window], window: Window, before: timedelta) -> list[Window]:
    """Return the windows whose rows a record of a window with a start may belong to, oldest first: rows come `before`
    their record by no more than that. None where the windows do not reach back so far, or one of them is missing.

    `earlier`: the judged windows before it, oldest first.
    """
    assert window.start is not None
    from_when = window.start - before
    windows = [*(judged for judged in earlier[:-1] if judged.end > from_when), *earlier[-1:]]
    is_whole = [judged.number for judged in windows] == list(range(window.number - len(windows), window.number))
    reaches_back = bool(windows) and (windows[0].start is None or windows[0].start <= from_when)
    return windows if is_whole and reaches_back else []


def _of_window(neighbours: NeighbouringWindows, hop: Hop, window: Window) -> _Files | None:
    """Return the files of the keys that a window met without a record, by bucket; None where it does not say it, or
    read another table, or by another time."""
    result = hop_results.results(neighbours.journal, window).get(hop.name)
    point = neighbours.context.pipeline.table(hop.target)
    if result is None or not slice_counts.has_counted(neighbours.journal, window, point):
        return None
    files: Any = result.files.get("met_alone")
    return None if files is None else dict(files)


def _reported_by(neighbours: NeighbouringWindows, hop: Hop, windows: Sequence[UnmatchedRows]) -> dict[int, list[str]]:
    """Return the keys that each of these windows reported as unexpected or undecidable; without the windows of which
    the journal has only a part of these findings."""
    revisions, name = {rows.number: rows.revision for rows in windows}, neighbours.context.pipeline.name
    keys = unexpected_keys(neighbours.journal, name, hop.name, revisions)
    return {rows.number: keys[rows.number] for rows in windows if len(keys[rows.number]) >= rows.finding_count}


def _by_bucket(neighbours: NeighbouringWindows, key_hashes: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    by_bucket: dict[str, list[tuple[int, int]]] = {}
    for high, low in map(split_hex, sorted({*key_hashes})):
        by_bucket.setdefault(bucket_name(high, neighbours.buckets), []).append((high, low))
    return by_bucket
