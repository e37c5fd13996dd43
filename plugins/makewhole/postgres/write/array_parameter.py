"""Many items as one parameter of one statement: a JSON array that the server takes apart."""

from collections.abc import Iterable
from typing import Any

import msgspec
from psycopg2 import sql

from makewhole.postgres.tables import TableRow, key_fields, key_parameters, listed, match_parts, quoted
from makewhole.postgres.write.chunk import OpenChunk


class NotTogether(Exception):  # noqa: N818 - no error: it says how to go on
    """Items cannot be done by one statement; the caller takes back what was written, and does them one by one."""


_TYPES = {
    "seq": "integer",
    "table_oid": "bigint",
    "ctid": "text",
    "row": "text",
    "value": "text",
    "stays": "text",
    "image": "text",
    "present": "text",
    "undone_plan": "text",
    "undone_seq": "integer",
    "undone_place": "text",
}


def items_with(chunk: OpenChunk, *fields: str) -> sql.Composable:
    """The items as rows `i` of these fields and of their keys' components; their texts are in parameter `items`."""
    columns = [f"{field} {_TYPES[field]}" for field in fields]
    columns += [f"{field} text" for field in key_fields(chunk.point.key)]
    return sql.SQL(f"json_to_recordset(%(items)s::json) as i ({', '.join(columns)})")


def as_items(chunk: OpenChunk, rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """The parameter: of each item its business key and its fields."""
    columns = chunk.point.key
    if len(columns) == 1:  # nearly always, and then worth a shorter way
        items: list[dict[str, Any]] = [fields | {"key_0": key} for key, fields in rows]
    else:
        items = [fields | key_parameters(columns, key) for key, fields in rows]
    return {"items": msgspec.json.encode(items).decode()}


def key_of_item(chunk: OpenChunk) -> list[sql.Composable]:
    """The components of an item's key, each a text."""
    return [quoted("i", field) for field in key_fields(chunk.point.key)]


def key_array(chunk: OpenChunk) -> sql.Composed:
    """The same as an array, as `OpenChunk.key_texts` has it of a row."""
    return sql.SQL("array[{}]").format(listed(key_of_item(chunk)))


def match_items(chunk: OpenChunk, row: str, *, is_exact: bool = False) -> sql.Composed:
    """The condition that a row, by its name in the statement, has the key of item `i`."""
    return match_parts(chunk.table, chunk.point.key, key_of_item(chunk), row=row, is_exact=is_exact)


def lock_rows_of_items(
    chunk: OpenChunk, keys: Iterable[tuple[int, str]], *, is_exact: bool
) -> dict[int, list[TableRow]]:
    """The rows of each (action number, key), by action number, with images and places; held, or only read."""
    found = chunk.run(
        "lock_rows_of_keys",
        as_items(chunk, ((key, {"seq": seq}) for seq, key in keys)),
        items=items_with(chunk, "seq"),
        match=match_items(chunk, "t", is_exact=is_exact),
        hold=chunk.hold,
    )
    now: dict[int, list[TableRow]] = {}
    for seq, table_oid, ctid, text, image, place in found:
        row = TableRow(table_oid=table_oid, ctid=ctid, text=text, image=image, place=place)
        now.setdefault(seq, []).append(row)
    return now


def require_settled(chunk: OpenChunk, seqs: Iterable[int]) -> None:
    """Every row of these actions is still what the statement that wrote it returned.

    Raises:
        NotTogether: a trigger wrote it again, or took it away.
    """
    if chunk.has_triggers_after and chunk.run("rows_overtaken", {"seqs": list(seqs)})[0][0]:
        raise NotTogether
