"""Pass many items to one statement as a single parameter: a JSON array that the server expands into rows."""

from collections.abc import Iterable
from typing import Any

import msgspec
from psycopg2 import sql

from makewhole.postgres.table import listed, match_parts, quoted
from makewhole.postgres.write.chunk import TableChunk
from makewhole.sql import record, single_value
from makewhole.tables.keys import key_fields, key_parameters
from makewhole.tables.rows import TableRow


class CannotRunTogether(Exception):  # noqa: N818 - no error: it says how to go on
    """Signal that one statement cannot do these items; the caller takes back what was written and tries fewer."""


_TYPES = {
    "seq": "integer",
    "table_oid": "bigint",
    "ctid": "text",
    "row": "text",
    "value": "text",
    "expected": "text[]",
    "stays": "text",
    "image": "text",
    "present": "text",
    "undone_plan": "text",
    "undone_seq": "integer",
    "undone_place": "text",
}


def recordset_of_items(chunk: TableChunk, *fields: str) -> sql.Composable:
    """Return the FROM clause that reads parameter `items` as rows `i`: these fields and the keys' components."""
    columns = [f"{field} {_TYPES[field]}" for field in fields]
    columns += [f"{field} text" for field in key_fields(chunk.point.key)]
    return sql.SQL(f"json_to_recordset(%(items)s::json) as i ({', '.join(columns)})")


def items_parameter(chunk: TableChunk, rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Return the parameter `items` for (business key, fields) of each item."""
    columns = chunk.point.key
    if len(columns) == 1:  # nearly always, and then worth a faster path
        items: list[dict[str, Any]] = [fields | {"key_0": key} for key, fields in rows]
    else:
        items = [fields | key_parameters(columns, key) for key, fields in rows]
    return {"items": msgspec.json.encode(items).decode()}


def item_key_parts(chunk: TableChunk) -> list[sql.Composable]:
    """Return the components of the key of item `i`, each a text."""
    return [quoted("i", field) for field in key_fields(chunk.point.key)]


def item_key_array(chunk: TableChunk) -> sql.Composed:
    """Return the key of item `i` as an array, comparable with `TableChunk.key_texts` of a row."""
    return sql.SQL("array[{}]").format(listed(item_key_parts(chunk)))


def match_item_keys(chunk: TableChunk, row: str, *, is_exact: bool = False) -> sql.Composed:
    """Return the condition that a row, by its name in the statement, has the key of item `i`."""
    return match_parts(chunk.table, chunk.point, item_key_parts(chunk), row=row, is_exact=is_exact)


def lock_rows_of_items(
    chunk: TableChunk, keys: Iterable[tuple[int, str]], *, is_exact: bool
) -> dict[int, list[TableRow]]:
    """Return the rows of each (action number, key), by action number, with images and places.

    They are locked until the transaction ends, or only read where the chunk holds no rows.
    """
    rows = chunk.run(
        "lock_rows_of_keys",
        items_parameter(chunk, ((key, {"seq": seq}) for seq, key in keys)),
        items=recordset_of_items(chunk, "seq"),
        match=match_item_keys(chunk, "t", is_exact=is_exact),
        hold=chunk.lock_clause,
    )
    now: dict[int, list[TableRow]] = {}
    for row in rows:
        now.setdefault(row.seq, []).append(record(TableRow, row))
    return now


def require_rows_as_written(chunk: TableChunk, seqs: Iterable[int]) -> None:
    """Check that every row of these actions is still what the statement that wrote it returned.

    Raises:
        CannotRunTogether: a trigger wrote a row again, or deleted it.
    """
    if chunk.has_triggers_after and single_value(chunk.run("rows_overtaken", {"seqs": list(seqs)})):
        raise CannotRunTogether
