"""Read what the catalogue says of the columns of tables: their types, and the identities of those of keys."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from makewhole.compute.value_types import ColumnKind
from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.erased import table_of_erased
from makewhole.postgres.read.expressions import column_types, regclass_text
from makewhole.postgres.read.identities import read_identity, read_server
from makewhole.postgres.read.relations import relation_kind
from makewhole.postgres.server_errors import SEE_ALL_ROWS
from makewhole.sql import PgConnection, single_value, statements_of
from makewhole.tables.columns import TableColumns
from makewhole.tables.shape import TableShape

_run = statements_of("export")


def describe_columns(
    connection: PostgresConnection, shapes: Iterable[TableShape]
) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
    """Return the columns of tables by point, and the tables and columns that do not exist or may be hidden in part, in
    one session.

    Raises:
        TransientError: the database does not answer.
    """
    columns: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    with connect(connection, "reading the columns of its tables") as session:
        server = read_server(session)
        for shape in shapes:
            point = shape.point
            try:
                known = column_types(session, shape)
            except ConfigurationError as error:
                problems += error.problems
                continue
            if single_value(_run(session, "hides_rows", table=regclass_text(point))):
                problems.append(_hidden_rows(point))
                continue
            if unfit := _unfit_equality(session, point):
                problems += unfit
                continue
            columns[point.name] = TableColumns(
                types=tuple(known[column] for column in point.key),
                ids=_column_ids(session, point),
                kinds=column_kinds(session, point),
                relation=relation_kind(session, point),
                identity=read_identity(session, server, point),
            )
    return columns, problems


def _hidden_rows(point: TablePoint) -> Problem:
    return Problem(
        file="pipeline file",
        path=f"points.{point.name}.table",
        found=f"row security may hide rows of {point.table} from the user of connection {point.connection}",
        remedy=f"{SEE_ALL_ROWS}: a row that is hidden looks like one that is lost",
    )


def _unfit_equality(session: PgConnection, point: TablePoint) -> list[Problem]:
    """Return the columns of keys, of the table and of that which names its erased keys, that take different texts for
    one: looked up by a key, they give the rows of another."""
    asked = [("key", regclass_text(point), point.table, list(point.key))]
    if point.erased is not None and point.erased.table is not None:
        of_erased = table_of_erased(point)
        asked.append(("erased", regclass_text(of_erased), of_erased.table, list(of_erased.key)))
    return [
        _takes_for_one(point, path, table, row)
        for path, regclass, table, columns in asked
        for row in _run(session, "equal_unlike_columns", table=regclass, columns=columns)
    ]


def _takes_for_one(point: TablePoint, path: str, table: str, column: Any) -> Problem:
    if column.type is None:
        why = (
            f"has the collation {column.collation}, which is nondeterministic: texts that differ are equal there, so "
            "that two keys would be one"
        )
        remedy = 'Give the column a deterministic collation, or name a view that reads it with `collate "C"`'
        what = "collation"
    else:
        why = f"is of type {column.type}, in which values whose texts differ are equal, so that two keys would be one"
        remedy = f'Make the column a `text`, or name a view that reads it as one: `{column.name}::text collate "C"`'
        what = "type"
    return Problem(
        file="pipeline file",
        path=f"points.{point.name}.{path}",
        found=f"column {column.name} of {table} {why}",
        remedy=f"{remedy}; what the {what} takes for one are two keys then, as they are in a topic",
    )


def _column_ids(session: PgConnection, point: TablePoint) -> dict[str, str]:
    return dict(statements_of("target")(session, "column_ids", table=regclass_text(point), columns=list(point.key)))


def column_kinds(session: PgConnection, point: TablePoint) -> dict[str, ColumnKind]:
    """Return the kinds of a table's columns by name."""
    return {
        row.name: ColumnKind.of(row.type, element=row.element, is_opaque=row.is_opaque, full_type=row.full_type)
        for row in _run(session, "column_kinds", table=regclass_text(point))
    }
