"""Build the SQL of business keys: the canonical text of a key column, and the condition that a row has a key.

The texts are those of `makewhole.compute.key_values`: what JSON says and what a column holds is one key where the
values are equal. A value that its key's type cannot hold is null.
"""

from collections.abc import Callable, Mapping, Sequence

from psycopg2 import sql

from makewhole.compute.canonical import ADDRESS_PATTERN
from makewhole.compute.key_values import (
    FALSE_PATTERN,
    LEAST_BIGINT,
    MOST_BIGINT,
    MOST_NUMBER_CHARACTERS,
    NUMBER_PATTERN,
    TRUE_PATTERN,
    UUID_PATTERN,
)
from makewhole.model.points import KeyType
from makewhole.tables.description import INTEGERS, bare

FLOATS = ("real", "double precision")
TEXTS = ("text", "character varying", "character", "bpchar", "citext", "name")
_CHAR = ("character", "bpchar")
_NATIVE: Mapping[KeyType, tuple[str, ...]] = {
    KeyType.CHAR: _CHAR,
    KeyType.BIGINT: (*INTEGERS, "numeric"),
    KeyType.DECIMAL: (*INTEGERS, "numeric"),
    KeyType.UUID: ("uuid",),
    KeyType.BOOLEAN: ("boolean",),
    KeyType.DATE: ("date",),
    KeyType.TIMESTAMP: ("timestamp with time zone", "timestamp without time zone"),
    KeyType.INET: ("inet", "cidr"),
}
"""Types of columns whose `=` is the equality of the key's type, so that an index on the column serves."""


def is_native(column_type: str, kind: KeyType) -> bool:
    """Return whether the column's own `=` distinguishes keys of this type."""
    return kind is KeyType.STRING or bare(column_type) in _NATIVE[kind]


def kinds_of(layout: Sequence[KeyType], parts: int) -> tuple[KeyType, ...]:
    """Return the types of a key's parts: texts as they are where no layout is known."""
    return tuple(layout) or (KeyType.STRING,) * parts


def key_column_text(column: sql.Composable, column_type: str, kind: KeyType) -> sql.Composable:
    """Return the canonical text of a key column; null where its value is none of this type."""
    if kind is KeyType.STRING:
        return own_output(column, column_type)
    return _TEXTS[kind](column, bare(column_type))


def key_column_matches(column: sql.Composable, column_type: str, kind: KeyType, part: sql.Composable) -> sql.Composable:
    """Return the condition that a column has a part of a key (canonical text), by an index where one can serve."""
    own = column if is_native(column_type, kind) else key_column_text(column, column_type, kind)
    return sql.SQL("{} = {}").format(own, key_column_value(column_type, kind, part))


def key_column_value(column_type: str, kind: KeyType, part: sql.Composable) -> sql.Composable:
    """Return what a column is compared with: a part of a key in the column's own type where an index can serve."""
    if not is_native(column_type, kind):
        return part
    name = bare(column_type)
    # As an `inet`, which the index of a `cidr` knows: an address within a network is no value of a `cidr`.
    own = "bpchar" if name in _CHAR else "inet" if name == "cidr" else name
    return sql.SQL("{}::{}").format(part, sql.SQL(own))


def own_output(column: sql.Composable, column_type: str) -> sql.Composable:
    """Return the text that PostgreSQL writes for a value of a type, in COPY and in JSON; of `boolean` and `character`
    the cast's, as ever. The cast of an `inet` adds the mask of a single host, which no output has."""
    return sql.SQL("abbrev({})" if bare(column_type) == "inet" else "{}::text").format(column)


def address(column: sql.Composable, column_type: str, unread: str = "null") -> sql.Composable:
    """Return a network address as text, without the mask that leaves one host; `unread` of what is none."""
    name = bare(column_type)
    if name in ("inet", "cidr"):
        return sql.SQL("abbrev({}::inet)").format(column)
    read = f"case when {{0}}::text ~ {{1}} then abbrev({{0}}::text::inet) else {unread} end"
    return sql.SQL(read).format(column, _whole_text(ADDRESS_PATTERN))


def _when(condition: str, text: str, *values: sql.Composable) -> sql.Composable:
    return sql.SQL(f"case when {condition} then {text} end").format(*values)


def _whole_text(pattern: str) -> sql.Composable:
    return sql.Literal(f"^({pattern})$")


def _char(column: sql.Composable, _: str) -> sql.Composable:
    return sql.SQL("nullif(rtrim({}::text, ' '), '')").format(column)


def _number(column: sql.Composable, name: str) -> sql.Composable:
    """Return the column as a numeric; null where it is no number."""
    if name == "numeric":
        return column
    if name in FLOATS:
        return _when("{0} - {0} = 0", "{0}::text::numeric", column)
    condition = "{0}::text ~ {1} and length({0}::text) <= {2}"
    values = (column, _whole_text(NUMBER_PATTERN), sql.Literal(MOST_NUMBER_CHARACTERS))
    return _when(condition, "{0}::text::numeric", *values)


def _decimal(column: sql.Composable, name: str) -> sql.Composable:
    if name in INTEGERS:
        return sql.SQL("{}::text").format(column)
    # NaN and the infinities are no numbers: their difference from themselves is NaN.
    return _when("{0} - {0} = 0", "trim_scale({0})::text", _number(column, name))


def _bigint(column: sql.Composable, name: str) -> sql.Composable:
    if name in INTEGERS:
        return sql.SQL("{}::text").format(column)
    bounds = (sql.Literal(LEAST_BIGINT), sql.Literal(MOST_BIGINT))
    condition = "{0} = trunc({0}) and {0} between {1} and {2}"
    return _when(condition, "trim_scale({0})::text", _number(column, name), *bounds)


def _uuid(column: sql.Composable, name: str) -> sql.Composable:
    if name == "uuid":
        return sql.SQL("{}::text").format(column)
    return _when("{0}::text ~ {1}", "{0}::text::uuid::text", column, _whole_text(UUID_PATTERN))


def _boolean(column: sql.Composable, name: str) -> sql.Composable:
    if name == "boolean":
        return sql.SQL("{}::text").format(column)
    words = "case when {0}::text ~ {1} then 'true' when {0}::text ~ {2} then 'false' end"
    return sql.SQL(words).format(column, _whole_text(TRUE_PATTERN), _whole_text(FALSE_PATTERN))


def _date(column: sql.Composable, name: str) -> sql.Composable:
    if name == "date":
        years = "{0} between date '0001-01-01' and date '9999-12-31'"
        return _when(years, "to_char({0}, 'YYYY-MM-DD')", column)
    pattern = sql.Literal("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$")
    first = "make_date(left({0}::text, 4)::int, substr({0}::text, 6, 2)::int, 1)"
    last_day = f"extract(day from {first} + interval '1 month - 1 day')"
    real = f"case when right({{0}}::text, 2)::int <= {last_day} then {{0}}::text end"
    return _when("{0}::text ~ {1} and left({0}::text, 4) <> '0000'", real, column, pattern)


def _timestamp(column: sql.Composable, _: str) -> sql.Composable:
    """The session's time zone is UTC (`postgres.connect`)."""
    years = "{0} >= '0001-01-01 00:00:00+00' and {0} < '10000-01-01 00:00:00+00'"
    return _when(years, """to_char({0}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""", column)


_TEXTS: Mapping[KeyType, Callable[[sql.Composable, str], sql.Composable]] = {
    KeyType.CHAR: _char,
    KeyType.BIGINT: _bigint,
    KeyType.DECIMAL: _decimal,
    KeyType.UUID: _uuid,
    KeyType.BOOLEAN: _boolean,
    KeyType.DATE: _date,
    KeyType.TIMESTAMP: _timestamp,
    KeyType.INET: address,
}
