"""Read the version column of a table: an integer, a decimal, a timestamp or a date; no other type orders versions."""

from psycopg2 import sql

from makewhole.compute.versions import NO_VERSION, SCALE
from makewhole.tables.description import INTEGERS, bare
from makewhole.tables.version_types import MOMENTS, NUMERIC


def version_text(column: sql.Composable, column_type: str) -> sql.Composable:
    """Return a version as the text that `makewhole.compute.versions.versions_of_table` reads."""
    kind, none = bare(column_type), sql.Literal(NO_VERSION)
    if kind in INTEGERS:
        return sql.SQL("{}::text").format(column)
    if kind == NUMERIC:
        return sql.SQL(
            "case when {0} = trunc({0}, {1}) and abs({0}) < 1e20 then trim_scale({0})::text "
            "when {0} is not null then {2} end"
        ).format(column, sql.Literal(SCALE), none)
    if kind in MOMENTS:
        return sql.SQL(
            "case when isfinite({0}) then 't' || round((extract(epoch from {0}) * 1000000)::numeric)::text "
            "when {0} is not null then {1} end"
        ).format(column, none)
    return sql.SQL("case when {} is not null then {} end").format(column, none)
