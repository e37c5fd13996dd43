"""Build the SQL of canonical texts: how a column reads in its declared type, for snapshots and for what was written."""

from collections.abc import Sequence

from psycopg2 import sql

from makewhole.compute.canonical import decimal_scale
from makewhole.postgres.tables import quoted

_CASTS = {
    "string": "{0}::text",
    "int": "trim_scale({0}::numeric)::text",
    "bigint": "trim_scale({0}::numeric)::text",
    "double": "{0}::float8::text",
    "boolean": "{0}::boolean::text",
    "timestamp": (
        "case when isfinite({0}) then (extract(epoch from {0}) * 1000000)::bigint::text else '!' || {0}::text end"
    ),
    "date": "case when isfinite({0}) then to_char({0}, 'YYYY-MM-DD') else '!' || {0}::text end",
}


def canonical_expression(column: sql.Composable, declared: str) -> sql.Composable:
    """Return the canonical text of a column, as snapshots read it; a double in PostgreSQL's own spelling."""
    scale = decimal_scale(declared)
    return sql.SQL(f"round({{0}}::numeric, {scale})::text" if scale is not None else _CASTS[declared]).format(column)


def canonical_array(row: str, columns: Sequence[tuple[str, str]]) -> sql.Composable:
    """Return the canonical texts of columns (name, declared type) of a row of a statement with parameters."""
    texts = [canonical_expression(quoted(row, name), declared) for name, declared in columns]
    return sql.SQL('array[{}]::text[] collate "C"').format(sql.SQL(", ").join(texts))
