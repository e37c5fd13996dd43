"""Read the rows of keys in a store as they are now."""

from collections.abc import Sequence

import polars as pl

from makewhole.compensation.verification.committed_since import CopiesByKey, by_key
from makewhole.compute.frames import KEYS, empty
from makewhole.compute.normalise import table_frame
from makewhole.model.places.compared_columns import columns_asked_at
from makewhole.window.context import WindowContext


def read_rows(context: WindowContext, name: str, keys: Sequence[str]) -> CopiesByKey:
    """Read every row of these keys in a table."""
    point = context.pipeline.table(name)
    reader = context.tables(point).reader(context.table_shape(point))
    frames = [table_frame(frame, dict(columns_asked_at(context.pipeline, name)))[0] for frame in reader.keys(keys)]
    return by_key(pl.concat(frames) if frames else empty(KEYS))
