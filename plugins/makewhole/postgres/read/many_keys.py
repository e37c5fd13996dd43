"""Read the rows of many business keys together, as `rows_of_key` does of one."""

from collections.abc import Sequence

from psycopg2 import sql

from makewhole.model.pipeline import TablePoint
from makewhole.postgres.tables import (
    Table,
    TableRow,
    key_components,
    key_fields,
    key_lookup,
    listed,
    match_parts,
    quoted,
    statement,
    survivor_order,
)
from makewhole.sql import PgConnection


def rows_of_many_keys(
    session: PgConnection, table: Table, point: TablePoint, keys: Sequence[str], *, is_exact: bool
) -> dict[str, list[TableRow]]:
    """Return the rows of each key that has any, by (time column, ctid).

    Raises:
        RefusedError: one of the keys is none that the table's columns can hold; ask for them one by one then.
    """
    fields = key_fields(point.key)
    parts = zip(*(key_components(key, point.key) for key in keys), strict=True)
    query = statement(
        "rows_of_many_keys",
        table=table.identifier,
        arrays=listed([sql.SQL("{}::text[]").format(sql.Placeholder(field)) for field in fields]),
        fields=listed([sql.Identifier(field) for field in fields]),
        match=match_parts(table, point, [quoted("wanted", field) for field in fields], is_exact=is_exact),
        order=survivor_order(point),
    )
    found: dict[str, list[TableRow]] = {}
    with key_lookup(session) as cursor:
        cursor.execute(query, {field: list(texts) for field, texts in zip(fields, parts, strict=True)})
        for number, table_oid, ctid, text in cursor:
            found.setdefault(keys[number - 1], []).append(TableRow(table_oid=table_oid, ctid=ctid, text=text))
    return found
