"""Read the version column of a table: an integer, a decimal, a timestamp or a date; no other type orders versions."""

from psycopg2 import sql

from makewhole.compute.versions import NO_VERSION, SCALE
from makewhole.postgres.key_columns import INTEGERS, bare

NUMERIC = "numeric"
_MOMENTS = ("timestamp without time zone", "timestamp with time zone", "date")
_DECLARED = {
    **dict.fromkeys(INTEGERS, "bigint"),
    NUMERIC: f"decimal(38,{SCALE})",
    **dict.fromkeys(_MOMENTS[:2], "timestamp"),
    "date": "date",
}


def is_version_type(column_type: str) -> bool:
    """Return whether the values of a column of this type can be versions."""
    return bare(column_type) in _DECLARED


def is_moment_type(column_type: str) -> bool:
    """Return whether the versions of a column of this type are moments."""
    return bare(column_type) in _MOMENTS


def declared_version(column_type: str) -> str:
    """Return the declared type that reads every version of a column."""
    return _DECLARED.get(bare(column_type), "bigint")


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
    if kind in _MOMENTS:
        return sql.SQL(
            "case when isfinite({0}) then 't' || round((extract(epoch from {0}) * 1000000)::numeric)::text "
            "when {0} is not null then {1} end"
        ).format(column, none)
    return sql.SQL("case when {} is not null then {} end").format(column, none)
