"""Run plain SQL in a database, as anybody would who knows nothing of makewhole."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import connection as PgConnection  # noqa: N812 - as the product calls it

Rows = list[tuple[Any, ...]]
Parameters = tuple[Any, ...] | list[Any] | Mapping[str, Any] | None


def run_sql(dsn: str, statement: str, *parameters: Any) -> Rows:
    """Run one statement in a session of its own, committed; return its rows, if it has any."""
    connection = psycopg2.connect(dsn)
    try:
        with connection:
            return execute(connection, statement, parameters or None)
    finally:
        connection.close()


def execute(connection: PgConnection, statement: str, parameters: Parameters = None) -> Rows:
    """Run one statement in a session that is there; return its rows, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def insert_rows(dsn: str, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, given by column, in their order."""
    run_sql(
        dsn,
        f"insert into {table} select * from json_populate_recordset(null::{table}, %s::json)",
        json.dumps(list(rows)),
    )
