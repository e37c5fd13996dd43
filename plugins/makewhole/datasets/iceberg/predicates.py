"""Express in Iceberg's terms which rows a read is for, so that files and groups of rows without any are not read.

Each may let more rows through than are wanted: what is read is held to the bounds and the keys themselves.
"""

from datetime import MAXYEAR, UTC, datetime
from functools import reduce
from typing import Any

import polars as pl
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThanOrEqual,
    Or,
)
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, StringType, TimestampType, TimestamptzType

from makewhole.datasets.row_keys import kinds_of_key
from makewhole.datasets.wanted_keys import OffsetRuns, WantedKeys, bigints
from makewhole.model.points import KeyType, TablePoint
from makewhole.tables.shape import TimeBounds

_MOST_LISTED = 200
"""More values than so many are compared by the least and the greatest alone, as Iceberg's own metrics are."""
ALWAYS_TRUE: BooleanExpression = AlwaysTrue()  # type: ignore[no-untyped-call]


def inside(schema: Schema, point: TablePoint, bounds: TimeBounds | None) -> BooleanExpression:
    """Return what holds for every row inside the bounds: of its times, or without one."""
    if bounds is None or point.time is None:
        return ALWAYS_TRUE
    kind = schema.find_field(point.time).field_type
    if not isinstance(kind, DateType | TimestampType | TimestamptzType) or _is_null_with_its_parent(schema, point.time):
        return ALWAYS_TRUE
    spans = [(bounds.start, bounds.end), *((rows.start, rows.end) for rows in bounds.earlier)]
    dated = [_between(point.time, kind, start, end) for start, end in spans]
    return reduce(_either, dated, IsNull(point.time))


def _is_null_with_its_parent(schema: Schema, column: str) -> bool:
    """Return whether a column takes no null, and is a part of another one, without which it is null all the same. By
    pyiceberg it never is."""
    parts, known = column.split("."), set(schema.column_names)
    outer = [name for name in (".".join(parts[:number]) for number in range(1, len(parts))) if name in known]
    return schema.find_field(column).required and any(schema.find_field(name).optional for name in outer)


def _either(predicate: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    return Or(predicate, other)


def _between(
    column: str, kind: DateType | TimestampType | TimestamptzType, start: datetime | None, end: datetime
) -> BooleanExpression:
    upper = ALWAYS_TRUE if end.year == MAXYEAR else LessThanOrEqual(column, _literal(kind, end))
    return upper if start is None else And(GreaterThanOrEqual(column, _literal(kind, start)), upper)


def _literal(kind: DateType | TimestampType | TimestamptzType, moment: datetime) -> str:
    own = moment.astimezone(UTC)
    if isinstance(kind, DateType):
        return own.date().isoformat()
    text = own.replace(tzinfo=None).isoformat(timespec="microseconds")
    return text if isinstance(kind, TimestampType) else f"{text}+00:00"


def of_keys(schema: Schema, point: TablePoint, keys: WantedKeys) -> BooleanExpression:
    """Return what holds for every row of the keys, by those parts whose values have one spelling."""
    if not len(keys):
        return ALWAYS_TRUE
    if keys.positions is not None:
        return _of_positions(point, keys.positions)
    columns = [
        _of_part(schema, name, kind, texts)
        for name, kind, texts in zip(point.key, kinds_of_key(point), keys.parts, strict=True)
    ]
    return reduce(_both, columns, ALWAYS_TRUE)


def _both(predicate: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    return And(predicate, other)


def _of_positions(point: TablePoint, positions: OffsetRuns) -> BooleanExpression:
    """Return what holds for positions: the partitions, each with the offsets from its least to its greatest."""
    partition_column, offset_column = point.key
    spans = [
        And(_span(partition_column, partition, partition), _span(offset_column, least, most))
        for partition, least, most in positions.edges()
    ]
    return reduce(_either, spans[1:], spans[0])


def _of_part(schema: Schema, name: str, kind: KeyType, texts: pl.Series) -> BooleanExpression:
    column = schema.find_field(name).field_type
    values = None
    if isinstance(column, IntegerType | LongType):
        values = bigints(texts)
    elif isinstance(column, StringType) and kind is KeyType.STRING:
        values = texts
    if values is None:
        return ALWAYS_TRUE
    if len(values) <= _MOST_LISTED:
        return In(name, set(values))
    return _span(name, values.min(), values.max())


def _span(name: str, least: Any, most: Any) -> BooleanExpression:
    return And(GreaterThanOrEqual(name, least), LessThanOrEqual(name, most))
