"""Build the SQL of a hop's `where`: whether a row passes, by the rules of `makewhole.compute.row_filter`.

A value that the type cannot hold is null here, so that it equals nothing; the column itself says whether it is null.
"""

from collections.abc import Mapping
from decimal import Decimal

from psycopg2 import sql

from makewhole.compute.canonical import moment_digits
from makewhole.compute.moments import MICROSECOND_DIGITS
from makewhole.compute.numbers import DOLLARS, FILTERED_NUMBER, MOST_CHARACTERS, NOT_FINITE, SPACES
from makewhole.compute.placeholders import PLACEHOLDERS
from makewhole.compute.row_filter import (
    FALSE_WORDS,
    TRUE_WORDS,
    FilterValue,
    TypedTerm,
    Unread,
    is_number,
)
from makewhole.config.hops.where import ORDERING, Operator
from makewhole.postgres.canonical import canonical_expression
from makewhole.postgres.key_columns import FLOATS, TEXTS
from makewhole.tables.description import INTEGERS, bare

_MOMENTS = ("timestamp with time zone", "timestamp without time zone")
_RANKED = {-1: "-Infinity", 1: "Infinity", 2: "NaN"}
_NEVER, _IS_SET = sql.SQL("false"), "{} is not null"
_NULL_TESTS = {Operator.IS_NULL: "", Operator.IS_NOT_NULL: "not "}
_JSON_NULL = """({0} is null or {0}::text ~ '^\\s*(null|"\\s*null\\s*")\\s*$')"""


def all_hold(terms: tuple[TypedTerm, ...], types: Mapping[str, str]) -> sql.Composable:
    """Return whether all terms hold for row `t`, never null; `types` are those of the table's columns."""
    return sql.SQL(" and ").join(_holds(term, types[term.column]) for term in terms)


def _holds(term: TypedTerm, column_type: str) -> sql.Composable:
    column = sql.SQL("t.{}").format(sql.Identifier(term.column))
    if term.operator in _NULL_TESTS:
        test = _JSON_NULL if column_type in ("json", "jsonb") and term.declared == "json" else "({0} is null)"
        return sql.SQL(_NULL_TESTS[term.operator] + test).format(column)
    value, literals = _value(term, column, column_type), _literals(term)
    if term.operator in ORDERING:
        is_compared = sql.SQL("coalesce({} {} {}, false)").format(value, sql.SQL(term.operator), literals[0])
        return is_compared if isinstance(term.values[0], tuple) else _NEVER
    is_one = sql.SQL("coalesce({} in ({}), false)").format(value, sql.SQL(", ").join(literals)) if literals else _NEVER
    if term.operator in (Operator.EQUAL, Operator.IN):
        return is_one
    return sql.SQL("({} is not null and not {}{})").format(column, is_one, _and_known(column, column_type))


def _and_known(column: sql.Composable, column_type: str) -> sql.Composable:
    """Return that a text is no placeholder, which may stand for any value."""
    if bare(column_type) not in TEXTS:
        return sql.SQL("")
    texts = sql.SQL(", ").join(map(sql.Literal, PLACEHOLDERS))
    return sql.SQL(" and rtrim({}::text, ' ') collate \"C\" not in ({})").format(column, texts)


def _literals(term: TypedTerm) -> list[sql.Composable]:
    """Return the literals in SQL. One that its type cannot hold is no value of any column, and is left out."""
    if not term.is_of_column:
        return [sql.Literal(text) for text in term.texts]
    return [_literal(value) for value in term.values if not isinstance(value, Unread)]


def _literal(value: FilterValue) -> sql.Composable:
    if not isinstance(value, tuple):
        return sql.Literal(value)
    rank, size = value
    return sql.SQL("{}::numeric").format(sql.Literal(_RANKED.get(rank) or format(Decimal(size), "f")))


def _value(term: TypedTerm, column: sql.Composable, column_type: str) -> sql.Composable:
    """Return what is compared with the literals; where nothing says a type, the column as it is."""
    declared, name = term.declared, bare(column_type)
    if not term.is_of_column:
        return column
    if is_number(declared):
        return _number(column, name)
    digits = moment_digits(declared)
    if digits is not None:
        return _moment(column, name, digits)
    if declared == "date":
        return _day(column, name)
    if declared == "boolean":
        return _boolean(column, name)
    # By bytes: a collation may take two texts for one.
    return sql.SQL('({}) collate "C"').format(canonical_expression(column, declared, column_type))


def _number(column: sql.Composable, name: str) -> sql.Composable:
    if name in (*INTEGERS, "numeric", "money"):
        return sql.SQL("{}::numeric").format(column)
    if name in FLOATS:
        return sql.SQL("{}::text::numeric").format(column)
    text = sql.SQL("btrim({}::text, {})").format(column, sql.Literal(SPACES))
    return sql.SQL(
        "case when {text} in ({not_finite}) then {text}::numeric when length({text}) > {most} then null "
        "when {text} ~ {number} then {text}::numeric "
        "when {text} ~ {dollars} then translate({text}, '$,', '')::numeric end"
    ).format(
        text=text,
        not_finite=sql.SQL(", ").join(map(sql.Literal, NOT_FINITE)),
        most=sql.Literal(MOST_CHARACTERS),
        number=sql.Literal(f"^({FILTERED_NUMBER})$"),
        dollars=sql.Literal(f"^({DOLLARS})$"),
    )


def _boolean(column: sql.Composable, name: str) -> sql.Composable:
    if name == "boolean":
        return column
    word = sql.SQL("lower(btrim({}::text, {}))").format(column, sql.Literal(SPACES))
    words = [sql.SQL(", ").join(map(sql.Literal, words)) for words in (TRUE_WORDS, FALSE_WORDS)]
    return sql.SQL("case when {0} in ({1}) then true when {0} in ({2}) then false end").format(word, *words)


def _moment(column: sql.Composable, name: str, digits: int) -> sql.Composable:
    """Return microseconds since 1970 as a numeric: in the last years that PostgreSQL knows 64 bits hold none, and its
    own fractions of seconds are rounded."""
    if name == "date":
        return _finite(column, name, "extract(epoch from {0})::numeric * 1000000")
    if name not in _MOMENTS:
        return sql.SQL("null::numeric")
    if digits < MICROSECOND_DIGITS:
        column = sql.SQL("{}::{}").format(column, sql.SQL(name.replace("timestamp", f"timestamp({digits})")))
    whole = "extract(epoch from date_trunc('second', {0}))::numeric * 1000000"
    return _finite(column, name, f"{whole} + extract(microseconds from {{0}})::bigint % 1000000")


def _day(column: sql.Composable, name: str) -> sql.Composable:
    if name not in (*_MOMENTS, "date"):
        return sql.SQL("null::numeric")
    return _finite(column, name, "({0}::date - date '1970-01-01')::numeric")


def _finite(column: sql.Composable, name: str, number: str) -> sql.Composable:
    """Return a number of a moment; null of a day after the last year that a record's text can have."""
    endless = "when {0} = 'infinity' then 'Infinity'::numeric when {0} = '-infinity' then '-Infinity'::numeric"
    is_written = "{0} < '1000000-01-01'" if name == "date" else "true"
    return sql.SQL(f"case {endless} when {is_written} then {number} end").format(column)
