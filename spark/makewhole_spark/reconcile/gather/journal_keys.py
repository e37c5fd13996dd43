"""Gather what the journal knows of the keys of a hop besides its slices: what was handed over to this window, what
waits, what compensation wrote, and what earlier windows reported.

There may be as many of these keys as of findings. The driver reads them so many at a time, and many of them reach the
tasks in files of their buckets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, WAITING
from makewhole.compute.keys import hashes_of_hex
from makewhole.journal.results import handover_keys
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.hops import Hop
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.task import HANDED_OVER, JournalKeys
from makewhole_spark.reconcile.gather.followed_rows import followed_rows
from makewhole_spark.reconcile.gather.ledger_files import already_reported
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

_STORED = {"hop": pl.String, "key": pl.String, "key_hash": pl.String, "since": WAITING["since"]}


@dataclass(frozen=True, kw_only=True)
class HopKeys:
    """Hold what is known of keys of a hop, by bucket; see `JournalKeys`."""

    handed_over: RowsByBucket
    judged_pending: RowsByBucket
    written: RowsByBucket
    followed: RowsByBucket
    already_reported: RowsByBucket

    def in_bucket(self, bucket: str) -> JournalKeys:
        """Return what is known of keys of a bucket."""
        return JournalKeys(**{name: rows.in_bucket(bucket) for name, rows in vars(self).items()})

    @property
    def judged_in(self) -> set[str]:
        """The buckets that have a verdict for that reason alone: those with keys handed over, or followed."""
        return {*self.handed_over.parts, *self.followed.parts}


def hop_keys(neighbours: NeighbouringWindows, hop: Hop) -> HopKeys:
    """Return what the journal knows of keys of a hop."""
    return HopKeys(
        handed_over=neighbours.by_bucket(f"{hop.slug}/handed_over", _handed_over(neighbours, hop), HANDED_OVER),
        judged_pending=neighbours.by_bucket(f"{hop.slug}/judged_pending", _judged_pending(neighbours, hop), WAITING),
        written=neighbours.keys_written_for_window(hop.source),
        followed=followed_rows(neighbours, hop),
        already_reported=already_reported(neighbours, hop),
    )


def handing_windows(neighbours: NeighbouringWindows, hop: Hop, handed_over: RowsByBucket) -> list[Window]:
    """Return the windows before this one that handed over any of the keys that it was given, newest first.

    A key may be handed over several times. In memory are the hashes of those that were.
    """
    handing: list[Window] = []
    left = handed_over.whole().read_hashes(neighbours.context.storage)
    for earlier in neighbours.backwards():
        if handing:  # the first one is the window that handed over all of them
            left = _of_these(left, _handovers(neighbours, earlier.number, hop))
        if left.is_empty():
            break
        handing.append(earlier)
    return handing


def _of_these(left: pl.DataFrame, others: Iterator[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([left.clear(), *(part.select(HASH).join(left, on=HASH, how="semi") for part in others)])


def _handed_over(neighbours: NeighbouringWindows, hop: Hop) -> Iterator[pl.DataFrame]:
    """Yield what the window before handed over on a hop (`HANDED_OVER`)."""
    number = neighbours.context.window.number - 1
    if neighbours.right_before is not None and neighbours.right_before.number == number:
        yield from _handovers(neighbours, number, hop)


def _judged_pending(neighbours: NeighbouringWindows, hop: Hop) -> Iterator[pl.DataFrame]:
    """Yield the keys that the last revision of this window judged pending (`WAITING`)."""
    window = neighbours.context.window
    if window.last_before > 0:
        for part in _handovers(neighbours, window.number, hop):
            yield part.select(*WAITING)


def _handovers(neighbours: NeighbouringWindows, number: int, hop: Hop) -> Iterator[pl.DataFrame]:
    """Yield the keys that a window hands over on a hop (`HANDED_OVER`), so many at a time."""
    name = neighbours.context.pipeline.name
    return map(_frame, handover_keys.handovers(neighbours.journal, name, number, hop.name))


def _frame(handovers: Sequence[Any]) -> pl.DataFrame:
    rows = pl.DataFrame(handovers, schema_overrides=_STORED, orient="row")
    return rows.with_columns(*hashes_of_hex()).select(*HANDED_OVER)
