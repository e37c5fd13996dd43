"""Build the SQL of canonical texts: how a column reads in its declared type, for snapshots and for what was written.

No value stops a statement: what PostgreSQL cannot read in the declared type, or what only we render, comes as the
type's own output behind `!`, and `makewhole.compute.canonical.column_text` reads it as it reads a record.
"""

from collections.abc import Callable, Mapping, Sequence

from psycopg2 import sql

from makewhole.compute.canonical import ARRAY, FLOATING, PARTS, decimal_scale, moment_digits
from makewhole.compute.key_values import MOST_NUMBER_CHARACTERS, NUMBER_PATTERN
from makewhole.compute.moments import MICROSECOND_DIGITS
from makewhole.postgres.key_columns import FLOATS, TEXTS, address, own_output
from makewhole.postgres.table import quoted
from makewhole.tables.description import INTEGERS, bare

_MOMENTS = ("timestamp with time zone", "timestamp without time zone")
_NUMBERS = (*INTEGERS, "numeric")
_UNREAD = "'!' || {0}::text"
_PLAIN_NUMBERS = "regexp_replace(regexp_replace({}, '(\\.[0-9]*[1-9])0+\\M', '\\1', 'g'), '\\.0+\\M', '', 'g')"
"""The text of an array of numbers, without the zeros at their ends that its type adds."""


def canonical_expression(column: sql.Composable, declared: str, column_type: str) -> sql.Composable:
    """Return the canonical text of a column of this type, as snapshots read it; a double in PostgreSQL's own spelling.

    A floating-point number counts by its shortest text: a cast to numeric rounds it to 15 digits, and two different
    numbers to one.
    """
    name = bare(column_type)
    scale = decimal_scale(declared)
    if scale is not None:
        return _number(column, name, f"round({{0}}, {scale})::text")
    if declared in ("int", "bigint"):
        return _number(column, name, "trim_scale({0})::text")
    if declared.endswith(ARRAY):
        return sql.SQL(_UNREAD).format(column)
    digits = moment_digits(declared)
    if digits is not None:
        return _timestamp(column, name, digits)
    return _EXPRESSIONS[declared](column, column_type)


def canonical_array(row: str, columns: Sequence[tuple[str, str]], types: Mapping[str, str]) -> sql.Composable:
    """Return the canonical texts of columns (name, declared type) of a row of a statement with parameters; `types` are
    those of the columns, by name."""
    texts = [canonical_expression(quoted(row, name), declared, types.get(name, "")) for name, declared in columns]
    return sql.SQL('array[{}]::text[] collate "C"').format(sql.SQL(", ").join(texts))


def comparable_expression(column: sql.Composable, declared: str, column_type: str) -> sql.Composable:
    """Return the text of a column that was just written, for a comparison in the statement itself.

    A double by its bits, JSON as `jsonb` writes it, an array by its own output, or as JSON where it is declared so; of
    the rest, the canonical text.
    """
    if declared in FLOATING:  # a zero has no sign; a `real` is read by its shortest text, and so is what it was given
        number = "{}::text::float8" if bare(column_type) == "real" else "{}::float8"
        return sql.SQL(f"float8send({number} + 0)::text").format(column)
    declared = "json" if declared == PARTS else declared
    if declared == "json" and column_type in ("json", "jsonb"):
        scalars = "when 'string' then {0}::jsonb #>> '{{}}' when 'null' then null"
        return sql.SQL(f"case jsonb_typeof({{0}}::jsonb) {scalars} else {{0}}::jsonb::text end").format(column)
    if declared == "json" or declared.endswith(ARRAY):
        is_json = declared == "json" and column_type.endswith(ARRAY)
        text = sql.SQL("to_jsonb({})::text" if is_json else "{}::text").format(column)
        return sql.SQL(_PLAIN_NUMBERS).format(text) if column_type == f"numeric{ARRAY}" else text
    return canonical_expression(column, declared, column_type)


def _number(column: sql.Composable, name: str, text: str) -> sql.Composable:
    """Return a number's text (`text` names the number); of a text only where it is one."""
    if name in (*_NUMBERS, "money"):
        return sql.SQL(text).format(sql.SQL("{}::numeric").format(column))
    number = sql.SQL(text).format(sql.SQL("{}::text::numeric").format(column))
    if name in FLOATS:
        return number
    if name not in TEXTS:
        return sql.SQL(_UNREAD).format(column)
    condition = "{0}::text ~ {1} and length({0}::text) <= {2}"
    values = (column, sql.Literal(f"^({NUMBER_PATTERN})$"), sql.Literal(MOST_NUMBER_CHARACTERS), number)
    return sql.SQL(f"case when {condition} then {{3}} else {_UNREAD} end").format(*values)


def _double(column: sql.Composable, column_type: str) -> sql.Composable:
    return sql.SQL("{0}::text" if column_type in (*FLOATS, *INTEGERS) else _UNREAD).format(column)


def _boolean(column: sql.Composable, column_type: str) -> sql.Composable:
    if column_type == "boolean":
        return sql.SQL("{}::text").format(column)
    if column_type in INTEGERS:
        return sql.SQL(f"case {{0}} when 1 then 'true' when 0 then 'false' else {_UNREAD} end").format(column)
    words = "case when lower({0}::text) in ('true', 'false') then lower({0}::text) else"
    return sql.SQL(f"{words} {_UNREAD} end").format(column)


def _timestamp(column: sql.Composable, name: str, digits: int) -> sql.Composable:
    if name not in (*_MOMENTS, "date"):
        return sql.SQL(_UNREAD).format(column)
    if name in _MOMENTS and digits < MICROSECOND_DIGITS:
        rounded = name.replace("timestamp", f"timestamp({digits})")
        column = sql.SQL(f"{{}}::{rounded}").format(column)
    # As a numeric: in the last years that PostgreSQL knows 64 bits hold no microseconds.
    microseconds = "round((extract(epoch from {0}) * 1000000)::numeric)::text"
    return sql.SQL(f"case when isfinite({{0}}) then {microseconds} else {_UNREAD} end").format(column)


def _date(column: sql.Composable, column_type: str) -> sql.Composable:
    if bare(column_type) not in (*_MOMENTS, "date"):
        return sql.SQL(_UNREAD).format(column)
    years = "{0} >= '0001-01-01' and {0} < '10000-01-01'"
    return sql.SQL(f"case when {years} then to_char({{0}}, 'YYYY-MM-DD') else {_UNREAD} end").format(column)


def _uuid(column: sql.Composable, column_type: str) -> sql.Composable:
    return sql.SQL("{0}::text" if column_type == "uuid" else _UNREAD).format(column)


def _own_form(column: sql.Composable, column_type: str) -> sql.Composable:
    """Return the text that PostgreSQL writes where the column has the type itself."""
    is_own = bare(column_type) in ("time without time zone", "macaddr")
    return sql.SQL("{0}::text" if is_own else _UNREAD).format(column)


def _json(column: sql.Composable, column_type: str) -> sql.Composable:
    return sql.SQL("'!' || to_json({})::text" if column_type.endswith(ARRAY) else _UNREAD).format(column)


def _char(column: sql.Composable, _: str) -> sql.Composable:
    return sql.SQL("rtrim({}::text, ' ')").format(column)


_EXPRESSIONS: Mapping[str, Callable[[sql.Composable, str], sql.Composable]] = {
    "string": own_output,
    "char": _char,
    **dict.fromkeys(FLOATING, _double),
    "boolean": _boolean,
    "date": _date,
    "time": _own_form,
    "macaddr": _own_form,
    "uuid": _uuid,
    "inet": lambda column, column_type: address(column, column_type, _UNREAD),
    "json": _json,
    PARTS: _json,
}
