"""Follow the rows of keys that compensation touched: a store may have got one more since it was judged.

A record that was sent again reaches every reader of its topic, and the original of a row that was written straight into
a store may be loaded late. No slice of a window need have both rows, so that these keys are looked up.
"""

import polars as pl

from makewhole.compute.frames import HASH, NAMED_KEYS
from makewhole_spark.reconcile.bucket.task import BucketTask


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
