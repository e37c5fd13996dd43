"""Writes one key into a store, guarded: never over newer data, never beside a row that appeared meanwhile."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg2 import sql

from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.connect import Session
from makewhole.postgres.tables import (
    Row,
    Table,
    key_components,
    lock_rows_of_key,
    match_key,
    statement,
)


@dataclass(frozen=True, kw_only=True)
class UpsertRow:
    """One action: `value` is a JSON object, `columns` those of its names that are written.

    `before` is what the plan saw of the key: nothing for a missing key, one row for a mismatched one.
    """

    seq: int
    key: str
    value: str
    columns: tuple[str, ...]
    before: tuple[Row, ...]


def upsert(connection: Session, table: Table, point: TablePoint, item: UpsertRow) -> str | None:
    """Insert or mend one key in the caller's transaction, which holds the table's lock. Returns a refusal's reason."""
    now = lock_rows_of_key(connection, table, point, item.key, is_exact=False)
    if item.before:
        return _mend(connection, table, point, item, now)
    if not now:
        return _insert(connection, table, point, item)
    if point.version and len(now) == 1 and _is_newer(connection, table, point, item):
        return _update(connection, table, point, item, now[0])
    return "stale: a row of this key appeared after the plan was made"


def _mend(connection: Session, table: Table, point: TablePoint, item: UpsertRow, now: Sequence[Row]) -> str | None:
    """Compare and set: the row must be exactly what the plan saw."""
    if not now:
        return "erased: the row of this key is gone since the plan was made"
    if list(now) != list(item.before):
        return "stale: the row of this key changed after the plan was made"
    if point.version and _is_older(connection, table, point, item):
        return "stale: the row is of a newer version than the record"
    return _update(connection, table, point, item, now[0])


def _insert(connection: Session, table: Table, point: TablePoint, item: UpsertRow) -> str | None:
    names = sql.SQL(", ").join(sql.Identifier(name) for name in item.columns)
    query = statement("insert_row", table=table.identifier, columns=names, key=_key_texts(point))
    return _written(connection, query, point, item, _wanted(point, item))


def _update(connection: Session, table: Table, point: TablePoint, item: UpsertRow, row: Row) -> str | None:
    settable = [name for name in item.columns if not table.columns[name].is_identity_always]
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier("wanted", name)) for name in settable
    )
    query = statement("update_row", table=table.identifier, assignments=assignments, key=_key_texts(point))
    parameters = {**_wanted(point, item), "ctid": row.ctid, "table_oid": row.table_oid}
    return _written(connection, query, point, item, parameters)


def _written(
    connection: Session, query: sql.Composed, point: TablePoint, item: UpsertRow, parameters: Mapping[str, object]
) -> str | None:
    """Run it and look at the key that the row really got.

    Raises:
        RefusedError: nothing was written, or under another key; the caller undoes it.
    """
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        found = cursor.fetchall()
    if len(found) != 1:
        raise RefusedError("stale: the table did not take the row (a trigger or a policy stopped it)")
    if tuple(found[0]) != key_components(item.key, point.key):
        raise RefusedError("unfit: written to this table, the record's value has another key than its own")
    return None


def _is_newer(connection: Session, table: Table, point: TablePoint, item: UpsertRow) -> bool:
    """Is the record's version above every row's? A null on either side is no proof."""
    return _compare(connection, table, point, item, sql.SQL("coalesce(bool_and({} < {}), false)"))


def _is_older(connection: Session, table: Table, point: TablePoint, item: UpsertRow) -> bool:
    """Is some row's version above the record's?"""
    return _compare(connection, table, point, item, sql.SQL("coalesce(bool_or({} > {}), false)"))


def _compare(connection: Session, table: Table, point: TablePoint, item: UpsertRow, test: sql.SQL) -> bool:
    version = point.version or ""
    match, parameters = match_key(table, point.key, item.key, is_exact=False)
    verdict = test.format(sql.Identifier("t", version), sql.Identifier("wanted", version))
    query = statement("compare_version", table=table.identifier, match=match, verdict=verdict)
    with connection.cursor() as cursor:
        cursor.execute(query, {**parameters, **_wanted(point, item)})
        row = cursor.fetchone()
    return bool(row and row[0])


def _wanted(point: TablePoint, item: UpsertRow) -> dict[str, object]:
    """The key under the value: a value that does not carry the key's columns gets them from the business key."""
    key = dict(zip(point.key, key_components(item.key, point.key), strict=True))
    return {"key": json.dumps(key), "value": item.value}


def _key_texts(point: TablePoint) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier("t", name)) for name in point.key)
