"""Leave out groups of rows by the statistics of a Parquet file: those that cannot hold what is asked for.

Each may let more rows through than are wanted: what is read is held to the bounds and the keys themselves.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.own_texts import MOST_MICROSECONDS
from makewhole.datasets.row_keys import kinds_of_key
from makewhole.datasets.wanted_keys import OffsetRuns, WantedKeys, bigints
from makewhole.model.points import KeyType, TablePoint
from makewhole.tables.shape import TimeBounds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_MICROSECOND = {"us": (1, 1), "ms": (1_000, 1), "ns": (1, 1_000)}
_LEAST = -(1 << 63)

EdgeValue = int | str


@dataclass(frozen=True, kw_only=True)
class Span:
    """Values of a column from the least to the greatest; moments are microseconds since 1970. `is_null`: no values."""

    column: str
    least: EdgeValue = 0
    most: EdgeValue = 0
    is_null: bool = False


Wanted = tuple[tuple[Span, ...], ...] | None
"""Rows that are asked for: those for which all spans of one of the alternatives hold; None: all."""


def inside(point: TablePoint, bounds: TimeBounds | None) -> Wanted:
    """Return what holds for every row inside the bounds: of its times, or without one."""
    if bounds is None or point.time is None:
        return None
    spans = [(bounds.start, bounds.end), *((rows.start, rows.end) for rows in bounds.earlier)]
    dated = [
        Span(column=point.time, least=_LEAST if start is None else _number(start), most=_number(end))
        for start, end in spans
    ]
    return tuple((span,) for span in [*dated, Span(column=point.time, is_null=True)])


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def of_keys(types: Mapping[str, ColumnType], point: TablePoint, keys: WantedKeys) -> Wanted:
    """Return what holds for every row of the keys, by those parts whose values have one spelling."""
    if not len(keys):
        return ()
    if keys.positions is not None:
        return _of_positions(point, keys.positions)
    columns = zip(point.key, kinds_of_key(point), keys.parts, strict=True)
    spans = [_of_part(types, name, kind, texts) for name, kind, texts in columns]
    known = tuple(span for span in spans if span is not None)
    return (known,) if known else None


def _of_positions(point: TablePoint, positions: OffsetRuns) -> Wanted:
    """Return what holds for positions: the partitions, each with the offsets from its least to its greatest."""
    partition_column, offset_column = point.key
    return tuple(
        (
            Span(column=partition_column, least=partition, most=partition),
            Span(column=offset_column, least=least, most=most),
        )
        for partition, least, most in positions.edges()
    )


def _of_part(types: Mapping[str, ColumnType], name: str, kind: KeyType, texts: pl.Series) -> Span | None:
    values = None
    if pa.types.is_integer(types[name]):
        values = bigints(texts)
    elif pa.types.is_string(types[name]) and kind is KeyType.STRING:
        values = texts
    return None if values is None else Span(column=name, least=_edge(values.min()), most=_edge(values.max()))


def _edge(value: Any) -> EdgeValue:
    assert isinstance(value, int | str)
    return value


def may_hold(file: pq.ParquetFile, group: int, wanted: Wanted, folders: Collection[str] = ()) -> bool:
    """Return whether a group of rows may hold what is asked for. Without statistics it may. `folders`: the columns that
    the names of folders hold, of which the statistics of the file say nothing."""
    if wanted is None:
        return True
    by_path = _columns_by_path(file.metadata.row_group(group))
    by_path = {path: column for path, column in by_path.items() if path not in folders}
    types = {field.name: field.type for field in file.schema_arrow}
    return any(
        all(_may_meet(by_path.get(span.column), types.get(span.column), span) for span in spans) for spans in wanted
    )


def _columns_by_path(group: Any) -> dict[str, Any]:
    """Return the columns of a group of rows by path. A name with dots in it may be the path of a part of another
    column, too: which of the two is asked for cannot be seen, and neither is returned."""
    columns = [group.column(at) for at in range(group.num_columns)]
    number = Counter(column.path_in_schema for column in columns)
    return {column.path_in_schema: column for column in columns if number[column.path_in_schema] == 1}


def _may_meet(column: Any, kind: ColumnType | None, span: Span) -> bool:
    statistics = None if column is None else column.statistics
    if statistics is None:
        return True
    edges = _edges(statistics, kind, span)
    if span.is_null:
        is_null = not statistics.has_null_count or statistics.null_count > 0
        return is_null or _has_distant_moments(kind, edges)
    return edges is None or (edges[0] <= span.most and span.least <= edges[1])


def _has_distant_moments(kind: ColumnType | None, edges: tuple[Any, Any] | None) -> bool:
    """Return whether a group may have moments that count as none, as they have too many microseconds."""
    if kind is None or not pa.types.is_timestamp(kind) or kind.unit not in ("s", "ms"):
        return False
    return edges is None or not -MOST_MICROSECONDS <= edges[0] <= edges[1] <= MOST_MICROSECONDS


def _edges(statistics: Any, kind: ColumnType | None, span: Span) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a group, as a span has them; None: they are not known."""
    if not statistics.has_min_max or kind is None:
        return None
    if pa.types.is_timestamp(kind) and isinstance(statistics.min_raw, int):
        times, parts = _PER_MICROSECOND[kind.unit] if kind.unit != "s" else (1_000_000, 1)
        return statistics.min_raw * times // parts, statistics.max_raw * times // parts
    if isinstance(span.least, int) and pa.types.is_integer(kind):
        return statistics.min, statistics.max
    if isinstance(span.least, str) and pa.types.is_string(kind):
        with suppress(UnicodeDecodeError):  # then rows are found not to decode where they are read
            return statistics.min, statistics.max
    return None
