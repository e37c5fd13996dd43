"""Translate between the names of a pipeline's file and the columns of a table: what is asked, and what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import polars as pl

from makewhole.model.errors import Problem
from makewhole.model.points import TablePoint
from makewhole.tables.description import TableDescription
from makewhole.tables.items import RowItem, UpsertRow
from makewhole.tables.row_change import RowChange
from makewhole.tables.rows import LedgerReading, LedgerRecord, ValuedRow
from makewhole.tables.shape import TableShape

T = TypeVar("T")

# What is asked


def in_table(point: TablePoint, by_name: Mapping[str, T]) -> dict[str, T]:
    """Return what belongs to names by the columns of a point's table."""
    return {point.column_place(name): value for name, value in by_name.items()}


def shape_in_table(shape: TableShape) -> TableShape:
    """Return what is read of a table by its columns."""
    point = shape.point
    if not point.columns:
        return shape
    filters = {
        hop: tuple(replace(term, column=point.column_place(term.column)) for term in terms)
        for hop, terms in shape.filters.items()
    }
    return TableShape(point=point.in_table, compare=in_table(point, shape.compare), filters=filters)


def reading_in_table(point: TablePoint, reading: LedgerReading) -> LedgerReading:
    """Return what of a ledger's rows is read as records, by its columns."""
    terms = tuple(replace(term, column=point.column_place(term.column)) for term in reading.terms)
    return replace(reading, columns=in_table(point, reading.columns), terms=terms)


def items_in_table(point: TablePoint, items: Sequence[RowItem]) -> Sequence[RowItem]:
    """Return what a chunk does to rows by the columns of the table."""
    return [_upsert_in_table(point, item) if isinstance(item, UpsertRow) else item for item in items]


def _upsert_in_table(point: TablePoint, item: UpsertRow) -> UpsertRow:
    at = point.column_place
    return replace(
        item,
        columns=tuple(map(at, item.columns)),
        expected=tuple((at(name), declared, text) for name, declared, text in item.expected),
        moment=None if item.moment is None else at(item.moment),
        left=tuple(map(at, item.left)),
        key_columns=tuple(map(at, item.key_columns)),
        value=_value_in_table(point, item.value),
    )


def _value_in_table(point: TablePoint, value: str) -> str:
    """Return a JSON object with the columns of the table as its names; what is none stays as it is."""
    try:
        fields = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return value
    return msgspec.json.encode(in_table(point, fields)).decode()


# What comes back


def by_name(point: TablePoint, by_column: Mapping[str, T]) -> dict[str, T]:
    """Return what belongs to the columns of a table by their names."""
    return {point.column_name(column): value for column, value in by_column.items()}


def named_frame(shape: TableShape, frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows that were read by columns with the compared ones by their names."""
    places = {name: shape.point.column_place(name) for name in shape.compare}
    return frame.rename({f"c:{place}": f"c:{name}" for name, place in places.items() if name != place})


def named_description(point: TablePoint, table: TableDescription) -> TableDescription:
    """Return a table with its columns by their names."""
    columns = {name: replace(column, name=name) for name, column in by_name(point, table.columns).items()}
    return TableDescription(schema=table.schema, name=table.name, columns=columns)


def named_row(point: TablePoint, row: ValuedRow) -> ValuedRow:
    """Return a row with its values by name; its text is that of the table."""
    return replace(row, values=by_name(point, row.values))


def named_record(point: TablePoint, record: LedgerRecord) -> LedgerRecord:
    """Return a ledger's row as a record, with its values by name; a whole row has its fields so, too."""
    compared = tuple((point.column_name(name), declared, text) for name, declared, text in record.compared)
    return replace(record, compared=compared, value=_named_value(point, record.value))


def _named_value(point: TablePoint, value: bytes | None) -> bytes | None:
    if value is None or point.payload is not None:
        return value
    return msgspec.json.encode(by_name(point, msgspec.json.decode(value, type=dict[str, msgspec.Raw])))


def named_change(point: TablePoint, change: RowChange) -> RowChange:
    """Return what an action changes with its columns by name; the rows are as the table has them."""
    return replace(
        change,
        columns=tuple(replace(column, name=point.column_name(column.name)) for column in change.columns),
    )


def named_problem(point: TablePoint, problem: Problem) -> Problem:
    """Return a problem of a column with the name by which the file knows it."""
    column = problem.path.removeprefix(f"points.{point.name}.")
    name = next((name for name, place in point.columns if place == column), None)
    if name is None:
        return problem
    return replace(problem, path=f"points.{point.name}.columns.{name}", found=f"{problem.found}, which is {name}")
