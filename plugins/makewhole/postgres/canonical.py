"""Build the SQL of canonical texts: how a column reads in its declared type, for snapshots and for what was written."""

from collections.abc import Mapping, Sequence

from psycopg2 import sql

from makewhole.compute.canonical import decimal_scale
from makewhole.postgres.key_columns import FLOATS
from makewhole.postgres.tables import quoted

_CASTS = {
    "string": "{0}::text",
    "int": "trim_scale({1})::text",
    "bigint": "trim_scale({1})::text",
    "double": "{0}::float8::text",
    "boolean": "{0}::boolean::text",
    "timestamp": (
        "case when isfinite({0}) then (extract(epoch from {0}) * 1000000)::bigint::text else '!' || {0}::text end"
    ),
    "date": "case when isfinite({0}) then to_char({0}, 'YYYY-MM-DD') else '!' || {0}::text end",
}


def canonical_expression(column: sql.Composable, declared: str, column_type: str) -> sql.Composable:
    """Return the canonical text of a column of this type, as snapshots read it; a double in PostgreSQL's own spelling.

    A floating-point number counts by its shortest text: a cast to numeric rounds it to 15 digits, and two different
    numbers to one.
    """
    scale = decimal_scale(declared)
    number = sql.SQL("{}::text::numeric" if column_type in FLOATS else "{}::numeric").format(column)
    text = f"round({{1}}, {scale})::text" if scale is not None else _CASTS[declared]
    return sql.SQL(text).format(column, number)


def canonical_array(row: str, columns: Sequence[tuple[str, str]], types: Mapping[str, str]) -> sql.Composable:
    """Return the canonical texts of columns (name, declared type) of a row of a statement with parameters; `types` are
    those of the columns, by name."""
    texts = [canonical_expression(quoted(row, name), declared, types.get(name, "")) for name, declared in columns]
    return sql.SQL('array[{}]::text[] collate "C"').format(sql.SQL(", ").join(texts))
