"""Read many record keys at once, as texts of a part of the business key; those that are unusual are left."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser
from makewhole.compute.decode.connect.payload_columns import payloads_by_opening
from makewhole.compute.decode.record_keys import BEHIND_PREFIX, RecordKeyFormat
from makewhole.compute.decode.value_format import ValueFormat, WantedLeaf
from makewhole.native.arrays import ArrowArray

_QUOTED = r'^"[^"\\\x00-\x1f]+"$'
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_ENVELOPES = EnvelopeParser()


def record_key_texts(batch: pa.RecordBatch, form: RecordKeyFormat, wanted: WantedLeaf) -> pl.Series:
    """Return the texts that the record keys of a batch (columns `key` and `headers`) have at a path, numbers as JSON
    writes them; null where one is left.

    `wanted` has the path in the key, empty for the key as a whole, and its type as a leaf that is a key.
    """
    keys = pa.record_batch({"value": batch.column("key"), "headers": batch.column("headers")})
    if not wanted.path and form.whole is not None:
        wanted = wanted._replace(path=(form.whole,))
    if wanted.path:
        return _nothing(len(keys)) if form.fields is None else _of_field(keys, form.fields, wanted)
    whole = _WHOLE.get(form.name)
    return _nothing(len(keys)) if whole is None else whole(keys)


def _nothing(size: int) -> pl.Series:
    return pl.repeat(None, size, dtype=pl.String, eager=True)


def _of_field(keys: pa.RecordBatch, form: ValueFormat, wanted: WantedLeaf) -> pl.Series:
    parts, _ = form.decode_together(keys, {"key": wanted})
    texts = _nothing(len(keys))
    for rows, frame in parts:
        texts = texts.scatter(rows, frame["key"])
    return texts


def _as_texts(column: ArrowArray) -> pl.Series:
    """Return texts as they are; null for what is none, or empty, or has a NUL."""
    texts = pl.Series("key", pl.from_arrow(column)).cast(pl.Binary)
    try:
        texts = texts.cast(pl.String, strict=True)
    except pl.exceptions.PolarsError:
        return _nothing(len(column))
    key = pl.col("key")
    is_usable = (key.str.len_bytes() > 0) & ~key.str.contains("\x00", literal=True)
    return texts.to_frame().select(pl.when(is_usable).then(key)).to_series()


def _as_scalars(column: ArrowArray) -> pl.Series:
    """Return texts in quotation marks without them, and integers; null for all else."""
    key, frame = pl.col("key"), _as_texts(column).alias("key").to_frame()
    text = pl.when(key.str.contains(_QUOTED)).then(key.str.slice(1, key.str.len_chars() - 2))
    return frame.select(text.when(key.str.contains(_INTEGER)).then(key)).to_series()


def _as_scalars_behind_prefixes(keys: pa.RecordBatch) -> pl.Series:
    rows, bodies = BEHIND_PREFIX.texts(keys)
    return _nothing(len(keys)).scatter(rows, _as_scalars(bodies.cast(pa.binary())))


def _as_scalars_in_envelopes(keys: pa.RecordBatch) -> pl.Series:
    groups, _ = payloads_by_opening(keys.column("value"), _ENVELOPES)
    texts = _nothing(len(keys))
    for rows, payloads, opening in groups:
        if opening.is_unconverted:
            texts = texts.scatter(np.asarray(rows), _as_scalars(payloads.cast(pa.binary())))
    return texts


_WHOLE: Mapping[str, Callable[[pa.RecordBatch], pl.Series]] = {
    "string": lambda keys: _as_texts(keys.column("value")),
    "json": lambda keys: _as_scalars(keys.column("value")),
    "json_schema": _as_scalars_behind_prefixes,
    "connect": _as_scalars_in_envelopes,
}
