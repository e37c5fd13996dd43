"""Account for every column of a row that `upsert` writes: nothing in it is filled, or left empty, implicitly."""

from psycopg2 import sql

from makewhole.postgres.table import Table, quoted
from makewhole.tables.description import Column


def moment_of_write(column: Column) -> sql.SQL:
    """Return the moment of a statement in the type of a column; one without a zone gets it in UTC."""
    if column.base_type == "timestamp with time zone":
        return sql.SQL("statement_timestamp()")
    return sql.SQL("(statement_timestamp() at time zone 'UTC')")


def values_to_insert(table: Table, columns: tuple[str, ...], moment: str | None) -> list[sql.Composable]:
    """Return what each column of an insert gets: from row `wanted`, or the moment of the statement."""
    return [moment_of_write(table.columns[name]) if name == moment else quoted("wanted", name) for name in columns]
