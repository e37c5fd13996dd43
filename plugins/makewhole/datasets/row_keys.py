"""Make the business keys of Arrow rows."""

import json
from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from makewhole.compute.key_layout import column_key_type
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem, key_of_numbers, key_text
from makewhole.datasets.arrow_types import NestedColumn
from makewhole.datasets.column_types import sql_type
from makewhole.datasets.nested_columns import all_types, column_at
from makewhole.datasets.value_texts import mapped, own_texts
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.keys import key_components


def kinds_of_key(point: TablePoint) -> Sequence[KeyType]:
    """Return the types by which the parts of a key are read."""
    return point.key_layout or (KeyType.STRING,) * len(point.key)


def loose_kinds_of_key(schema: pa.Schema, point: TablePoint) -> Sequence[KeyType]:
    """Return the types that make two spellings one key in the columns themselves."""
    types = all_types(schema)
    return [
        (column_key_type(sql_type(types[name])) or kind) if kind is KeyType.STRING else kind
        for name, kind in zip(point.key, kinds_of_key(point), strict=True)
    ]


def key_texts(rows: pa.Table, point: TablePoint, kinds: Sequence[KeyType] | None = None) -> pl.Series:
    """Return the keys of rows; null: a row has none. `kinds`: other types to read their parts by."""
    parts = [
        _part_texts(column_at(rows, name), kind)
        for name, kind in zip(point.key, kinds or kinds_of_key(point), strict=True)
    ]
    if len(parts) == 1:
        return parts[0].cast(pl.String).alias("key")
    if all(part.dtype.is_signed_integer() and not part.null_count() for part in parts):
        return key_of_numbers([part.cast(pl.Int64).to_numpy() for part in parts]).alias("key")
    frame = pl.DataFrame([part.alias(str(at)) for at, part in enumerate(parts)])
    quoted = [
        pl.col(name) if _needs_no_escape(part) else pl.col(name).map_batches(_quoted, return_dtype=pl.String)
        for name, part in zip(frame.columns, parts, strict=True)
    ]
    form = "[" + ",".join('"{}"' for _ in quoted) + "]"
    return frame.select(pl.format(form, *quoted).alias("key")).to_series()


def _part_texts(array: NestedColumn, kind: KeyType) -> pl.Series:
    """Return a part of keys as texts, or as the numbers whose texts it is."""
    if kind is KeyType.BIGINT and pa.types.is_integer(array.type):
        numbers = pl.from_arrow(array)
        assert isinstance(numbers, pl.Series)
        return numbers
    texts = own_texts(array)
    if kind is KeyType.STRING and not texts.str.contains("\0", literal=True).any() and not (texts == "").any():
        return texts
    return mapped(texts, lambda text: _part_text(text, kind), pl.String)


def _part_text(text: str, kind: KeyType) -> str | None:
    try:
        return part_text(text, kind)
    except KeyProblem:
        return None


def _needs_no_escape(texts: pl.Series) -> bool:
    return texts.dtype.is_integer() or not texts.str.contains(r'["\\\x00-\x1f\x7f]').any()


def _quoted(texts: pl.Series) -> pl.Series:
    """Return texts as they stand between the quotation marks of JSON."""
    return mapped(texts, lambda text: json.dumps(text, ensure_ascii=False)[1:-1], pl.String)


def wanted_key(schema: pa.Schema, point: TablePoint, key: str, *, is_exact: bool) -> tuple[str, Sequence[KeyType]]:
    """Return the text of a key by the types that its rows are found by, and these types. `is_exact`: not those of an
    equal key in another spelling.

    Raises:
        RefusedError: the columns cannot hold such a key.
    """
    own = loose_kinds_of_key(schema, point)
    components = key_components(key, point.key)
    if _joined(components, own) is None:
        types = all_types(schema)
        columns = ", ".join(f"{name} {sql_type(types[name])}" for name in point.key)
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the key columns of {point.table} ({columns}) cannot hold it")
    kinds = kinds_of_key(point) if is_exact else own
    return _joined(components, kinds) or key, kinds


def _joined(components: Sequence[str], kinds: Sequence[KeyType]) -> str | None:
    parts = [_part_text(part, kind) for part, kind in zip(components, kinds, strict=True)]
    known = [part for part in parts if part is not None]
    return key_text(known) if len(known) == len(parts) else None
