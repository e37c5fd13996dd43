"""Find which keys the records may have that could not be read: Kafka's own key says it where the records beside them
have their business key there."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.decode.coordinates import coordinate_keys
from makewhole.compute.decode.record_values import RECORD_KEY, ValueShape
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem
from makewhole.model.points import KeyType

_MOST_COMPARED = 1_000
_NO_KEY = "\0"
"""The text of what is no value of the key's type, and so no key of the topic's."""


def unread_keys(batch: pa.RecordBatch, keys: pl.Series, shape: ValueShape) -> pl.Series:
    """Return the business key of each record whose key could not be read (null in `keys`): its Kafka key, where that is
    the business key, or where all records of the batch that could be read have it so. Null: it may be any key. A key
    that is no content of a record needs no reading.

    `batch` has the column `key` where `shape` asks for it. What is no key of the topic has a text that is none.
    """
    if shape.coordinates:
        return coordinate_keys(batch, shape.key)[0].fill_null(_NO_KEY)
    unread = keys.is_null().arg_true().to_list()
    business_keys: list[str | None] = [None] * len(keys)
    if unread and "key" in batch.schema.names and len(shape.key) == 1:
        kind, record_keys = shape.key_kinds[0], batch.column("key")
        if shape.key[0] == RECORD_KEY or _agree(record_keys, keys, kind):
            for at, text in zip(unread, _texts(record_keys, unread, kind), strict=True):
                business_keys[at] = text
    return pl.Series(business_keys, dtype=pl.String)


def _agree(record_keys: Any, keys: pl.Series, kind: KeyType) -> bool:
    """Return whether the records that could be read have their business key as Kafka's key; there is one at least."""
    read = keys.is_not_null().arg_true().to_list()[:_MOST_COMPARED]
    return bool(read) and all(
        text == key for text, key in zip(_texts(record_keys, read, kind), keys.gather(read).to_list(), strict=True)
    )


def _texts(record_keys: Any, rows: Sequence[int], kind: KeyType) -> Iterator[str | None]:
    for raw in record_keys.take(pa.array(rows, type=pa.int64())).to_pylist():
        try:
            yield None if raw is None else part_text(raw.decode(), kind)
        except (UnicodeDecodeError, KeyProblem):
            yield _NO_KEY
