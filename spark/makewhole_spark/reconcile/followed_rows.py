"""Follow the rows of keys that compensation touched: a store may have got one more since it was judged.

A record that was sent again reaches every reader of its topic, and the original of a row that was written straight into
a store may be loaded late. No slice of a window need have both rows, so that these keys are looked up.
"""

from collections.abc import Sequence

import polars as pl

from makewhole.compute.frames import HASH, NAMED_KEYS
from makewhole.compute.keys import hashes_of_hex
from makewhole.journal.written_keys import rows_written
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.pipeline import Hop, Semantics
from makewhole.model.points import TablePoint
from makewhole_spark.reconcile.buckets import BucketTask
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


def followed_rows(neighbours: NeighbouringWindows, hop: Hop) -> RowsByBucket:
    """Return the keys (`key` and hashes) of which plans wrote a row straight into the table that a hop ends in: for the
    window itself, or since the window before it was opened, or within the time that a key may wait.

    A loader that overwrites has one row whatever comes.
    """
    context = neighbours.context
    if hop.semantics is Semantics.UPSERT or not isinstance(context.pipeline.points[hop.target], TablePoint):
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


def keys_to_follow(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose rows are looked up whatever the slices hold: followed ones, and those judged here of which
    a record was sent again to the source."""
    if task.is_upsert:
        return pl.DataFrame(schema=NAMED_KEYS)
    sent = pl.concat([task.source_replays.select(HASH), task.written.select(HASH)]).unique()
    return pl.concat([task.followed.select(*NAMED_KEYS), judged.join(sent, on=HASH, how="semi").select(*NAMED_KEYS)])


def only_repeated(rows: pl.DataFrame, judged: pl.DataFrame, asked_anyway: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows of keys that have nothing to do with this window, unless a key has several."""
    here = pl.concat([judged.select(HASH), asked_anyway.select(HASH)]).unique()
    repeated = rows.group_by(HASH).len().filter(pl.col("len") > 1).select(HASH)
    return rows.join(pl.concat([here, repeated]).unique(), on=HASH, how="semi", maintain_order="left")
