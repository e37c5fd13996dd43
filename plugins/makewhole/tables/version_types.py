"""Name the types of columns that order versions: an integer, a decimal, a timestamp or a date, and no other."""

from makewhole.compute.versions import SCALE
from makewhole.tables.description import INTEGERS, bare

NUMERIC = "numeric"


MOMENTS = ("timestamp without time zone", "timestamp with time zone", "date")


_DECLARED = {
    **dict.fromkeys(INTEGERS, "bigint"),
    NUMERIC: f"decimal(38,{SCALE})",
    **dict.fromkeys(MOMENTS[:2], "timestamp"),
    "date": "date",
}


def is_version_type(column_type: str) -> bool:
    """Return whether the values of a column of this type can be versions."""
    return bare(column_type) in _DECLARED


def is_moment_type(column_type: str) -> bool:
    """Return whether the versions of a column of this type are moments."""
    return bare(column_type) in MOMENTS


def declared_version(column_type: str) -> str:
    """Return the declared type that reads every version of a column."""
    return _DECLARED.get(bare(column_type), "bigint")
