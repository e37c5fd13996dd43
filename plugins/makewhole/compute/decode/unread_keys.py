"""Find which keys the records may have that could not be read: Kafka's own key says it where the records beside them
have their business key there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.decode.coordinates import coordinate_keys
from makewhole.compute.decode.read_record import RECORD_KEY, ReadRecord, is_in_record_key
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem
from makewhole.model.places.record_paths import path_names, written_path

_MOST_COMPARED = 1_000
_NO_KEY = "\0"
"""The text of what is no value of the key's type, and so no key of the topic's."""


def unread_keys(batch: pa.RecordBatch, keys: pl.Series, shape: ValueShape) -> pl.Series:
    """Return the business key of each record whose key could not be read (null in `keys`): its Kafka key, where that is
    the business key, or where all records of the batch that could be read have it so. Null: it may be any key, or has
    several elements. A key that is no content of a record needs no reading.

    `batch` has `headers`, and `key` where `shape` asks for it. What is no key of the topic has a text that is none; one
    whose schema is not known may be any key.
    """
    if shape.coordinates:
        return coordinate_keys(batch, shape.key)[0].fill_null(_NO_KEY)
    unread = keys.is_null().arg_true().to_list()
    business_keys: list[str | None] = [None] * len(keys)
    if unread and "key" in batch.schema.names and len(shape.key) == 1 and shape.elements is None:
        record_keys = _RecordKeys(batch, shape)
        place = next((place for place in _places(shape.key[0]) if record_keys.agree(keys, place)), None)
        if place is not None:
            for at, text in zip(unread, record_keys.texts(unread, place), strict=True):
                business_keys[at] = text
    return pl.Series(business_keys, dtype=pl.String)


def _places(part: str) -> Sequence[str]:
    """Return where Kafka's key may have a part of the business key: itself, or in a field of the same name."""
    return [part] if is_in_record_key(part) else [RECORD_KEY, RECORD_KEY + written_path(path_names(part)[-1:])]


@dataclass(frozen=True)
class _RecordKeys:
    """The record keys of a batch."""

    batch: Any
    shape: ValueShape

    def agree(self, keys: pl.Series, place: str) -> bool:
        """Return whether the records that could be read have their business key there; there is one at least, unless
        it is there by the shape."""
        if place == self.shape.key[0]:
            return True
        read = keys.is_not_null().arg_true().to_list()[:_MOST_COMPARED]
        texts = self.texts(read, place)
        return bool(read) and all(text == key for text, key in zip(texts, keys.gather(read).to_list(), strict=True))

    def texts(self, rows: Sequence[int], place: str) -> Iterator[str | None]:
        """Yield the texts that these rows have as business key there."""
        at = pa.array(rows, type=pa.int64())
        raw_keys, all_headers = (self.batch.column(name).take(at).to_pylist() for name in ("key", "headers"))
        for raw, headers in zip(raw_keys, all_headers, strict=True):
            try:
                record = ReadRecord(fields={}, record_key=raw, headers=headers, read_key=self.shape.record_key.read)
                part = record.part(place)
                yield None if raw is None else part_text(part, self.shape.key_kinds[0])
            except KeyProblem:
                yield None if self.shape.record_key.is_described else _NO_KEY
