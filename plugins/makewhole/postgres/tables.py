"""What a table is by the catalogue, and its rows by business key. Identifiers are checked before they are used."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

from makewhole.journal.database import load_queries
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.connect import Session, describe


@dataclass(frozen=True, kw_only=True)
class Column:
    """`type` is without its modifier (`character varying`, not `character varying(3)`)."""

    name: str
    type: str
    is_generated: bool
    is_identity_always: bool


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that exists, with its columns in order."""

    schema: str
    name: str
    columns: Mapping[str, Column]

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    @property
    def writable(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns.values() if not column.is_generated)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: where it is (`table_oid` tells partitions apart) and its whole text as JSON."""

    table_oid: int
    ctid: str
    text: str


def describe_table(connection: Session, point: TablePoint) -> Table:
    """The table of a point.

    Raises:
        RefusedError: there is no such table, or it lacks a column that the point names.
    """
    schema, _, name = point.table.rpartition(".")
    with connection.cursor() as cursor:
        cursor.execute(load_queries("target")["table_columns"], {"schema": schema or None, "name": name})
        found = cursor.fetchall()
    if not found:
        raise RefusedError(
            f"point {point.name}: {point.table!r} is not a table that connection {point.connection} can see; "
            "check `table` (write schema.table; views cannot be written)"
        )
    columns = {
        row[2]: Column(name=row[2], type=row[3], is_generated=row[4], is_identity_always=row[5]) for row in found
    }
    named = [*point.key, point.time, point.version, point.payload, point.record_key]
    absent = [name for name in named if name and name not in columns]
    if absent:
        raise RefusedError(
            f"point {point.name}: {point.table} has no column {', '.join(absent)}; "
            "the table changed, or the pipeline file is wrong"
        )
    return Table(schema=found[0][0], name=found[0][1], columns=columns)


def key_components(key: str, columns: Sequence[str]) -> tuple[str, ...]:
    """A business key's text taken apart: one component is its text, several are a JSON array of strings."""
    if len(columns) == 1:
        return (key,)
    parts = json.loads(key)
    if not isinstance(parts, list) or len(parts) != len(columns):
        raise RefusedError(f"a key does not have the {len(columns)} components that {', '.join(columns)} ask for")
    return tuple(parts)


def match_key(table: Table, columns: Sequence[str], key: str, *, is_exact: bool) -> tuple[sql.Composed, dict[str, str]]:
    """The condition `row t has this key`, and its parameters.

    Compared in the column's own type, so that an index serves; `is_exact` also asks for the same text (1.0 is not
    1.00). Leave it out to ask whether a key is *free*: there, an equal value in another spelling counts too.
    """
    terms: list[sql.Composable] = []
    parameters = {}
    for place, (name, part) in enumerate(zip(columns, key_components(key, columns), strict=True)):
        column, value = sql.Identifier("t", name), sql.Placeholder(f"key_{place}")
        cast = sql.SQL(table.columns[name].type)  # from format_type: already quoted by the catalogue
        terms.append(sql.SQL("{} = {}::{}").format(column, value, cast))
        if is_exact:
            terms.append(sql.SQL("{}::text = {}").format(column, value))
        parameters[f"key_{place}"] = part
    return sql.SQL(" and ").join(terms), parameters


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """A statement of target.sql with its identifiers filled in."""
    return sql.SQL(load_queries("target")[name]).format(**parts)


@contextmanager
def key_lookup(connection: Session) -> Iterator[PgCursor]:
    """A short transaction for one key's look-up.

    Raises:
        RefusedError: the column's type cannot hold such a key.
    """
    try:
        with connection, connection.cursor() as cursor:
            yield cursor
    except psycopg2.DataError as error:
        # Not chained: the message quotes the key.
        raise RefusedError(f"unfit: the table's key columns cannot hold this key: {describe(error)}") from None


def rows_of_key(
    connection: Session,
    table: Table,
    point: TablePoint,
    key: str,
    *,
    is_exact: bool = True,
    is_latest_first: bool = False,
) -> list[Row]:
    """All rows of a key by (time column, ctid), or the latest version first: a quarantine's survivor is the first."""
    match, parameters = match_key(table, point.key, key, is_exact=is_exact)
    order = survivor_order(point, is_latest_first=is_latest_first)
    query = statement("rows_of_key", table=table.identifier, match=match, order=order)
    with key_lookup(connection) as cursor:
        cursor.execute(query, parameters)
        return [Row(table_oid=row[0], ctid=row[1], text=row[2]) for row in cursor.fetchall()]


def lock_rows_of_key(
    connection: Session, table: Table, point: TablePoint, key: str, *, is_exact: bool = True
) -> list[Row]:
    """The same rows, in no order, locked until the transaction ends."""
    match, parameters = match_key(table, point.key, key, is_exact=is_exact)
    with connection.cursor() as cursor:
        cursor.execute(statement("lock_rows_of_key", table=table.identifier, match=match), parameters)
        return [Row(table_oid=row[0], ctid=row[1], text=row[2]) for row in cursor.fetchall()]


def survivor_order(point: TablePoint, *, is_latest_first: bool = False) -> sql.Composed:
    """First by time column, then by place; or the latest version first."""
    terms: list[sql.Composable] = []
    direction = sql.SQL(" desc nulls last" if is_latest_first else " nulls last")
    if is_latest_first and point.version:
        terms.append(sql.Identifier("t", point.version) + direction)
    if point.time:
        terms.append(sql.Identifier("t", point.time) + direction)
    terms.append(sql.SQL("t.ctid"))
    return sql.SQL(", ").join(terms)
