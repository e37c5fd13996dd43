"""Turn Arrow rows into the frames that `makewhole.compute.normalise.table_frame` takes, inside a window's bounds."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compute.row_filter import TypedTerm
from makewhole.compute.versions import VERSION, versions_of_texts
from makewhole.config.hops.where import Operator
from makewhole.datasets.arrow_types import NestedColumn
from makewhole.datasets.nested_columns import column_at
from makewhole.datasets.own_texts import microseconds
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.value_texts import declared_texts, mapped, own_texts
from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def frame_of_rows(rows: pa.Table, places: Sequence[pl.Series], shape: TableShape) -> pl.DataFrame:
    """Return rows as a frame; `places` (`NUMBERED_PLACE`) say where each lies."""
    point = shape.point
    compared = [
        declared_texts(column_at(rows, name), declared).alias(f"c:{name}") for name, declared in shape.compare.items()
    ]
    return pl.DataFrame(
        [
            key_texts(rows, point),
            *places,
            times_of_rows(rows, point).alias("time_us"),
            versions_of_rows(rows, point).alias("version"),
            _excluded_by(rows, shape.filters).alias("excluded_by"),
            *compared,
        ]
    )


def times_of_rows(rows: pa.Table, point: TablePoint) -> pl.Series:
    """Return the times of rows in microseconds since 1970; null: a row has none."""
    if point.time is None:
        return _nulls(len(rows), pl.Int64)
    return microseconds(column_at(rows, point.time))


def versions_of_rows(rows: pa.Table, point: TablePoint) -> pl.Series:
    """Return the numbers of the versions of rows."""
    if point.version is None:
        return _nulls(len(rows), VERSION)
    return versions_of_texts(own_texts(column_at(rows, point.version)))


def _nulls(number: int, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, number)


def _excluded_by(rows: pa.Table, filters: Mapping[str, Sequence[TypedTerm]]) -> pl.Series:
    """Return the hops whose filter each row does not pass, joined by commas."""
    passed = {hop: _passes(rows, terms) for hop, terms in filters.items() if terms}
    frame = pl.DataFrame(passed, schema=dict.fromkeys(passed, pl.Boolean)) if passed else pl.DataFrame()
    if not passed:
        return pl.Series([""], dtype=pl.String).new_from_index(0, len(rows))
    names = [pl.when(~pl.col(hop)).then(pl.lit(hop)) for hop in passed]
    return frame.select(pl.concat_str(names, separator=",", ignore_nulls=True)).to_series()


def _passes(rows: pa.Table, terms: Sequence[TypedTerm]) -> pl.Series:
    held = [_holds(column_at(rows, term.column), term) for term in terms]
    return (
        pl.DataFrame({str(at): series for at, series in enumerate(held)})
        .select(pl.all_horizontal(pl.all()))
        .to_series()
    )


def _holds(array: NestedColumn, term: TypedTerm) -> pl.Series:
    known = mapped(own_texts(array), term.holds, pl.Boolean)
    return known.fill_null(term.operator is Operator.IS_NULL)


def is_of_topics(rows: pa.Table, point: TablePoint) -> pl.Series | None:
    """Return which rows come from the topics that lead into a dataset, or to which their records are sent again; None:
    all do."""
    dataset = point.dataset
    if dataset is None or dataset.topic is None or not dataset.counted_topics:
        return None
    column = column_at(rows, dataset.topic)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        topics = pa.array(dataset.counted_topics, column.type)
        is_own: Any = pc.is_in(column, topics) if len(topics) > 1 else pc.equal(column, topics[0])
        return pl.Series(is_own).fill_null(value=False)
    return own_texts(column).is_in(list(dataset.counted_topics)).fill_null(value=False)


def is_inside(times: pl.Series, is_certain: Mapping[str, pl.Series], bounds: TimeBounds) -> pl.Series:
    """Return which rows are inside the bounds; `is_certain`: which rows were there for certain, by what was seen."""
    frame = pl.DataFrame({"t": times})
    undated = pl.lit(bounds.start is None or bounds.seen_before is None)
    inside = frame.select(_between(bounds.start, bounds.end)).to_series()
    for earlier in bounds.earlier:
        rows = frame.select(_between(earlier.start, earlier.end)).to_series()
        inside |= rows if earlier.seen_before is None else rows & ~is_certain[earlier.seen_before]
    without = frame.select(pl.col("t").is_null() & undated).to_series()
    if bounds.seen_before is not None:
        without |= times.is_null() & ~is_certain[bounds.seen_before]
    return inside | without


def _between(start: datetime | None, end: datetime) -> pl.Expr:
    lower = pl.lit(value=True) if start is None else pl.col("t") >= _number(start)
    return (lower & (pl.col("t") < _number(end)) & pl.col("t").is_not_null()).fill_null(value=False)


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def is_in_slice(times: pl.Series, of: TimeSlice) -> pl.Series:
    """Return which rows are in a slice; those without a time are in none."""
    return times.to_frame("t").select(_between(of.start, of.end)).to_series()


def rows_ahead(times: Iterable[pl.Series]) -> RowsAhead:
    """Return the rows with times more than a day after now."""
    limit = _number(datetime.now(UTC) + timedelta(days=1))
    ahead = pl.concat(
        [pl.Series("t", [], dtype=pl.Int64), *(series.filter(series > limit).alias("t") for series in times)]
    )
    texts = [_text(value) for value in (ahead.min(), ahead.max()) if isinstance(value, int)]
    oldest, newest = texts or (None, None)
    return RowsAhead(rows=len(ahead), oldest=oldest, newest=newest, infinite=0)


def _text(microseconds_since_1970: int) -> str:
    try:
        return str(_EPOCH + timedelta(microseconds=microseconds_since_1970))
    except OverflowError:
        return f"{microseconds_since_1970} microseconds since 1970"
