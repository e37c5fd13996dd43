"""Gather the keys of which compensation wrote rows straight into a table: it may have got one more since it was judged.

The original of a row that was written there may be loaded late. No slice of a window need have both rows, so that these
keys are looked up.
"""

from collections.abc import Sequence

import polars as pl

from makewhole.compute.frames import NAMED_KEYS
from makewhole.compute.keys import hashes_of_hex
from makewhole.journal.written_keys import rows_written
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import can_look_up
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


def followed_rows(neighbours: NeighbouringWindows, hop: Hop) -> RowsByBucket:
    """Return the keys (`key` and hashes) of which plans wrote a row straight into the table that a hop ends in: for the
    window itself, or since the window before it was opened, or within the time that a key may wait.

    A loader that overwrites has one row whatever comes.
    """
    context = neighbours.context
    if hop.semantics is Semantics.UPSERT or not can_look_up(context.pipeline.points[hop.target]):
        return neighbours.by_bucket(hop.slug, (), NAMED_KEYS)
    window = context.window
    since = window.opened_at - context.pipeline.pending_max_age
    if neighbours.right_before is not None:
        since = min(since, neighbours.right_before.opened_at)
    keys = rows_written(neighbours.journal, window, hop.target, since)
    return neighbours.by_bucket(f"{hop.slug}/followed", map(_named, keys), NAMED_KEYS)


def _named(keys: Sequence[tuple[str, str]]) -> pl.DataFrame:
    rows = pl.DataFrame(keys, schema={"key": pl.String, "key_hash": pl.String}, orient="row")
    return rows.with_columns(*hashes_of_hex()).select(*NAMED_KEYS)
