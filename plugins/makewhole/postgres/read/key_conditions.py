"""Select the rows of many keys.

PostgreSQL chooses for each statement between an index, row by row, and one pass over the table with a hash table of
the keys (since version 14). So a statement has many keys: where the table is passed over, it is for all of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from psycopg2 import sql

from makewhole.model.points import KeyType
from makewhole.postgres.key_columns import is_native, kinds_of
from makewhole.postgres.read.expressions import column_types, key_expression
from makewhole.postgres.read.slices import has_index
from makewhole.sql import PgConnection
from makewhole.tables.description import INTEGERS, bare
from makewhole.tables.shape import TableShape

_KEYS_PER_STATEMENT = 500_000
"""Some 20 MB of text."""
_TEXT_TYPES = ("text", "character varying")
# Only the spelling that PostgreSQL itself writes: `007` must not find the row of 7, whose key is another.
_INT = re.compile(r"0|-?[1-9][0-9]{0,18}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CANONICAL = {
    KeyType.BIGINT: _INT,
    KeyType.DECIMAL: re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]*[1-9])?"),
    KeyType.DATE: re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    KeyType.TIMESTAMP: re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{6}Z"),
}
"""Types whose canonical texts a column of the type reads, so that its index helps."""


def has_key_index(session: PgConnection, shape: TableShape) -> bool:
    """Return whether an index finds the rows of a key: the key is one column, which is compared as it is (see
    `key_condition`) and begins an index. Of a key of several columns the whole table is read."""
    point = shape.point
    if len(point.key) != 1:
        return False
    kind, typed = bare(column_types(session, shape)[point.key[0]]), kinds_of(point.key_layout, 1)[0]
    is_text = kind in _TEXT_TYPES and typed is KeyType.STRING
    is_typed = typed in _CANONICAL and is_native(kind, typed)
    return (kind in INTEGERS or kind == "uuid" or is_text or is_typed) and has_index(session, point, point.key[0])


def key_conditions(shape: TableShape, types: Mapping[str, str], keys: Sequence[str]) -> Iterator[sql.Composable]:
    """Yield conditions for the rows with one of these keys: one for each statement, no key in two."""
    for start in range(0, len(keys), _KEYS_PER_STATEMENT):
        yield key_condition(shape, types, keys[start : start + _KEYS_PER_STATEMENT])


def key_condition(shape: TableShape, types: Mapping[str, str], keys: Sequence[str]) -> sql.Composable:
    """Return the condition for rows with one of these keys, in the column's own type where that lets an index help."""
    point = shape.point
    kind = bare(types[point.key[0]]) if len(point.key) == 1 else "several"
    typed = kinds_of(point.key_layout, len(point.key))[0]
    column = sql.SQL("t.{}").format(sql.Identifier(point.key[0]))
    usable = [key for key in keys if "\x00" not in key]
    if kind in INTEGERS:
        numbers = [int(key) for key in usable if _INT.fullmatch(key)]
        fitting = [number for number in numbers if -(2**63) <= number < 2**63]
        return sql.SQL("{} = any({}::bigint[])").format(column, sql.Literal(fitting))
    if kind == "uuid":
        return sql.SQL("{} = any({}::uuid[])").format(
            column, sql.Literal([key for key in usable if _UUID.fullmatch(key)])
        )
    if kind in _TEXT_TYPES and typed is KeyType.STRING:
        return sql.SQL("{} = any({}::text[])").format(column, sql.Literal(usable))
    if typed in _CANONICAL and is_native(kind, typed):
        fitting_texts = [key for key in usable if _CANONICAL[typed].fullmatch(key)]
        return sql.SQL("{} = any({}::{}[])").format(column, sql.Literal(fitting_texts), sql.SQL(kind))
    return sql.SQL("{} = any({}::text[])").format(key_expression(point, types), sql.Literal(usable))
