"""Say in Iceberg's expressions which rows a read is for, so that files and groups of rows without any are not read.

Each may let more rows through than are wanted: what is read is held to the bounds and the keys themselves.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import MAXYEAR, UTC, datetime
from functools import reduce

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
from makewhole.model.points import KeyType, TablePoint
from makewhole.tables.shape import TimeBounds

_MOST_LISTED = 200
"""More values than so many are compared by the least and the greatest alone, as Iceberg's own metrics are."""
_MOST_BIGINT = 2**63 - 1
ALWAYS_TRUE: BooleanExpression = AlwaysTrue()  # type: ignore[no-untyped-call]


def inside(schema: Schema, point: TablePoint, bounds: TimeBounds | None) -> BooleanExpression:
    """Return what holds for every row inside the bounds: of its times, or without one."""
    if bounds is None or point.time is None:
        return ALWAYS_TRUE
    kind = schema.find_field(point.time).field_type
    if not isinstance(kind, DateType | TimestampType | TimestamptzType):
        return ALWAYS_TRUE
    spans = [(bounds.start, bounds.end), *((one.start, one.end) for one in bounds.earlier)]
    dated = [_between(point.time, kind, start, end) for start, end in spans]
    return reduce(_either, dated, IsNull(point.time))


def _either(one: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    return Or(one, other)


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


def of_keys(schema: Schema, point: TablePoint, keys: Sequence[str]) -> BooleanExpression:
    """Return what holds for every row of the keys, by those parts whose values have one spelling."""
    parts = [[key] for key in keys] if len(point.key) == 1 else [json.loads(key) for key in keys]
    if not parts:
        return ALWAYS_TRUE
    kinds = kinds_of_key(point)
    if point.dataset is not None and point.key == point.dataset.position and len(point.key) == 2:
        return _of_positions(point, parts)
    columns = [
        _of_part(schema, name, kind, [part[at] for part in parts])
        for at, (name, kind) in enumerate(zip(point.key, kinds, strict=True))
    ]
    return reduce(_both, columns, ALWAYS_TRUE)


def _both(one: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    return And(one, other)


def _of_positions(point: TablePoint, parts: Sequence[Sequence[str]]) -> BooleanExpression:
    """Return what holds for positions: the partitions, each with the offsets from its least to its greatest."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for partition, offset in parts:
        if not (_is_bigint(partition) and _is_bigint(offset)):
            return ALWAYS_TRUE
        by_partition[int(partition)].append(int(offset))
    partition_column, offset_column = point.key
    spans = [
        And(_span(partition_column, [partition]), _span(offset_column, offsets))
        for partition, offsets in sorted(by_partition.items())
    ]
    return reduce(_either, spans[1:], spans[0])


def _of_part(schema: Schema, name: str, kind: KeyType, texts: Sequence[str]) -> BooleanExpression:
    column = schema.find_field(name).field_type
    if isinstance(column, IntegerType | LongType) and all(map(_is_bigint, texts)):
        return _listed(name, sorted({int(text) for text in texts}))
    if isinstance(column, StringType) and kind is KeyType.STRING:
        return _listed(name, sorted(set(texts)))
    return ALWAYS_TRUE


def _listed(name: str, values: Sequence[int] | Sequence[str]) -> BooleanExpression:
    if len(values) <= _MOST_LISTED:
        return In(name, set(values))
    return _span(name, values)


def _span(name: str, values: Sequence[int] | Sequence[str]) -> BooleanExpression:
    return And(GreaterThanOrEqual(name, min(values)), LessThanOrEqual(name, max(values)))


def _is_bigint(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and abs(int(text)) <= _MOST_BIGINT
