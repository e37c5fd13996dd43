"""Describe the columns of tables in memory."""

from collections.abc import Mapping, Sequence

from makewhole.compute.value_types import ColumnKind
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.identities import TableIdentity
from makewhole.tables.shape import TableShape
from tests.memory.rows import Database, StoredTable


def describe_columns(
    database: Database, shapes: Sequence[TableShape]
) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
    """Return the columns of tables by point, and the tables and columns that do not exist."""
    by_point: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for shape in shapes:
        try:
            table = existing_table(database, shape)
        except ConfigurationError as error:
            problems += error.problems
        else:
            by_point[shape.point.name] = _columns(database, table, shape.point)
    return by_point, problems


def existing_table(database: Database, shape: TableShape) -> StoredTable:
    """Return the table of a shape.

    Raises:
        ConfigurationError: the table or a column does not exist.
    """
    point, table = shape.point, database.tables.get(shape.point.table)
    if table is None:
        raise ConfigurationError([_problem(point, "table", f"table {point.table} does not exist", "Correct its name")])
    known = f"It has: {', '.join(sorted(table.columns))}"
    unknown = sorted(shape.column_names() - set(table.columns))
    if unknown:
        raise ConfigurationError(
            [_problem(point, name, f"{point.table} has no column {name}", known) for name in unknown]
        )
    return table


def _problem(point: TablePoint, path: str, text: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point.name}.{path}", found=text, remedy=remedy)


def _columns(database: Database, table: StoredTable, point: TablePoint) -> TableColumns:
    return TableColumns(
        types=tuple(table.columns[name].type for name in point.key),
        ids={name: f"{table.number}.{name}" for name in point.key},
        kinds=kinds_of({name: column.type for name, column in table.columns.items()}),
        relation="r",
        identity=TableIdentity(
            server=database.identity, table=table.number, rows_in=frozenset({table.number}), is_row_by_row=True
        ),
    )


def kinds_of(types: Mapping[str, str]) -> Mapping[str, ColumnKind]:
    return {name: ColumnKind.of(column_type, full_type=column_type) for name, column_type in types.items()}
