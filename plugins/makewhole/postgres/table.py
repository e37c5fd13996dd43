"""Describe a table from the catalogue and read its rows by business key. Identifiers are checked before use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg2
from psycopg2 import sql

from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.postgres.connect import describe
from makewhole.postgres.key_columns import (
    is_native,
    key_column_matches,
    key_column_text,
    key_column_value,
    kinds_of,
)
from makewhole.sql import PgConnection, PgCursor, load_queries, record, statements_of
from makewhole.tables.description import Column, TableDescription
from makewhole.tables.keys import key_fields, key_parameters
from makewhole.tables.rows import TableRow

_run = statements_of("target")


@dataclass(frozen=True, kw_only=True)
class Table(TableDescription):
    """A table that exists, with what PostgreSQL says of it.

    `unique` are the sets of columns for which the catalogue guarantees that `match_parts` finds one row at most.
    """

    oid: int
    unique: Sequence[frozenset[str]]

    @property
    def identifier(self) -> sql.Composable:
        """The qualified name, quoted."""
        return quoted(self.schema, self.name)

    @property
    def place(self) -> sql.Composable:
        """Place of row `t`: its ctid, after the partition's name where it lies in one, as in snapshots."""
        return sql.SQL(f"case when t.tableoid = {self.oid} then '' else t.tableoid::regclass::text end || t.ctid::text")

    def has_one_row_per(self, point: TablePoint) -> bool:
        """Return whether a unique index promises one row at most for a key: of columns that distinguish keys by
        their own `=`, none of them null."""
        names = {name for name, kind in _typed_parts(point) if is_native(self.columns[name].base_type, kind)}
        return any(columns <= names for columns in self.unique)


def describe_table(session: PgConnection, point: TablePoint) -> Table:
    """Return the table of a point.

    Raises:
        RefusedError: there is no such table, or it lacks a column that the point names.
    """
    *schema, name = point.table_names
    rows = _run(session, "table_columns", schema=schema[0] if schema else None, name=name)
    if not rows:
        raise RefusedError(
            f"point {point.name}: {point.table!r} is not a table that connection {point.connection} can see; "
            "check `table` (write schema.table; views cannot be written)"
        )
    columns = {row.name: record(Column, row) for row in rows}
    named = [*point.key, point.time, point.version, point.payload, point.record_key, *point.header_columns]
    absent = [name for name in named if name and name not in columns]
    if absent:
        raise RefusedError(
            f"point {point.name}: {point.table} has no column {', '.join(absent)}; "
            "the table changed, or the pipeline file is wrong"
        )
    table, unique = rows[0], [frozenset(names) for names in rows[0].column_sets]
    return Table(schema=table.schema, name=table.table_name, oid=table.oid, columns=columns, unique=unique)


def cascading_references(session: PgConnection, table: Table, *, with_triggers: bool = False) -> tuple[str, ...]:
    """Return the foreign keys through which deleting a row would delete or change rows elsewhere; and `with_triggers`
    the triggers that run after it, which may."""
    asked = {"schema": table.schema, "name": table.name, "with_triggers": with_triggers}
    return tuple(name for (name,) in _run(session, "cascading_references", **asked))


def quoted(*names: str) -> sql.Composable:
    """Quote a name, or a qualified one, for a statement with parameters (percent signs are doubled)."""
    text = ".".join('"{}"'.format(name.replace('"', '""')) for name in names)
    return sql.SQL(text.replace("%", "%%"))


class InParameters(sql.Composable):
    """A part of a statement that is run with parameters: percent signs in its names and texts are doubled."""

    def __init__(self, part: sql.Composable) -> None:
        super().__init__(part)
        self._part = part

    def as_string(self, context: Any) -> str:
        """Return the text of the part."""
        return self._part.as_string(context).replace("%", "%%")


def listed(parts: Iterable[sql.Composable], by: str = ", ") -> sql.Composed:
    """Join the parts with a separator."""
    return sql.SQL(by).join(parts)


def _typed_parts(point: TablePoint) -> Iterator[tuple[str, KeyType]]:
    """Yield each key column with the type of the key's part."""
    return zip(point.key, kinds_of(point.key_layout, len(point.key)), strict=True)


def key_texts(table: Table, point: TablePoint, row: str = "t") -> sql.Composed:
    """Return the canonical texts of the key's parts of a row, as an array."""
    texts = [
        key_column_text(quoted(row, name), table.columns[name].base_type, kind) for name, kind in _typed_parts(point)
    ]
    return sql.SQL("array[{}]").format(listed(texts))


def key_values(table: Table, point: TablePoint, row: str = "t") -> list[sql.Composable]:
    """Return what distinguishes the keys of rows by `=`: the columns, or their canonical texts where their own `=`
    does not."""
    return [
        quoted(row, name)
        if is_native(table.columns[name].base_type, kind)
        else key_column_text(quoted(row, name), table.columns[name].base_type, kind)
        for name, kind in _typed_parts(point)
    ]


def match_key(table: Table, point: TablePoint, key: str, *, is_exact: bool) -> tuple[sql.Composed, dict[str, str]]:
    """Return the condition that row `t` has this key, and its parameters; see `match_parts`."""
    placeholders = [sql.Placeholder(name) for name in key_fields(point.key)]
    return match_parts(table, point, placeholders, is_exact=is_exact), key_parameters(point.key, key)


def match_parts(
    table: Table, point: TablePoint, parts: Sequence[sql.Composable], *, is_exact: bool, row: str = "t"
) -> sql.Composed:
    """Return the condition that `row` has this key; `parts` are the key's components as texts in the statement.

    A part of a type is compared by its value. A text as it is, too, is compared in the column's own type, so that an
    index serves; `is_exact` then also requires the same text (1.0 is not 1.00). Without it an equal value in another
    spelling counts, too, as it must when asking whether a key is *free*.
    """
    terms: list[sql.Composable] = []
    for (name, kind), part, value in zip(_typed_parts(point), parts, values_of_parts(table, point, parts), strict=True):
        column = quoted(row, name)
        if kind is not KeyType.STRING:
            terms.append(key_column_matches(column, table.columns[name].base_type, kind, part))
            continue
        terms.append(sql.SQL("{} = {}").format(column, value))
        if is_exact:
            terms.append(sql.SQL("{}::text = {}").format(column, part))
    return listed(terms, " and ")


def values_of_parts(table: Table, point: TablePoint, parts: Sequence[sql.Composable]) -> list[sql.Composable]:
    """Return what the key's columns are compared with: each part of the key as its column's type reads it."""
    values: list[sql.Composable] = []
    for (name, kind), part in zip(_typed_parts(point), parts, strict=True):
        if kind is not KeyType.STRING:
            values.append(key_column_value(table.columns[name].base_type, kind, part))
            continue
        cast = sql.SQL(table.columns[name].type.replace("%", "%%"))  # from format_type: quoted by the catalogue
        values.append(sql.SQL("{}::{}").format(part, cast))
    return values


@cache
def _statements() -> Mapping[str, str]:
    return {**load_queries("target"), **load_queries("target_many")}


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return a statement of target.sql or target_many.sql with its identifiers filled in."""
    return sql.SQL(_statements()[name]).format(**parts)


@contextmanager
def key_lookup(session: PgConnection, table: Table, point: TablePoint) -> Iterator[PgCursor]:
    """Run a short transaction for one key's look-up.

    Raises:
        RefusedError: the column's type cannot hold such a key.
    """
    try:
        with session, session.cursor() as cursor:
            yield cursor
    except (psycopg2.DataError, psycopg2.IntegrityError) as error:  # the latter: a domain does not take it
        # Not chained: the message quotes the key.
        columns = ", ".join(f"{name} {table.columns[name].type}" for name in point.key)
        where = f"{table.schema}.{table.name} ({columns})"
        raise ActionRefusedError.of(
            RefusalCode.UNFIT, f"the key columns of {where} cannot hold this key: {describe(error)}"
        ) from None


def rows_of_key(
    session: PgConnection,
    table: Table,
    point: TablePoint,
    key: str,
    *,
    is_exact: bool = True,
    is_latest_first: bool = False,
) -> list[TableRow]:
    """Return all rows of a key by (time column, ctid), or the latest version first: the first is the survivor."""
    match, parameters = match_key(table, point, key, is_exact=is_exact)
    order = survivor_order(point, is_latest_first=is_latest_first)
    query = statement("rows_of_key", table=table.identifier, match=match, order=order)
    with key_lookup(session, table, point) as cursor:
        cursor.execute(query, parameters)
        return [TableRow(table_oid=table_oid, ctid=ctid, text=text) for table_oid, ctid, text in cursor.fetchall()]


def survivor_order(point: TablePoint, *, is_latest_first: bool = False) -> sql.Composed:
    """Return the order in which the survivor is first: by time column, then by place; or the latest version first."""
    terms: list[sql.Composable] = []
    direction = sql.SQL(" desc nulls last" if is_latest_first else " nulls last")
    if is_latest_first and point.version:
        terms.append(quoted("t", point.version) + direction)
    if point.time:
        terms.append(quoted("t", point.time) + direction)
    terms.append(sql.SQL("t.ctid"))
    return sql.SQL(", ").join(terms)
