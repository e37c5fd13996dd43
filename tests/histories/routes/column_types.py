"""List types of PostgreSQL, one and more of each family, with values as its own input has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAKE_TYPES = "create type mood as enum ('sad', 'so so', 'glad')"


@dataclass(frozen=True)
class ColumnType:
    """A column's type in PostgreSQL, what the pipeline file declares it, and some values, all different."""

    name: str
    declared: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class KeyColumn:
    """A key's type in PostgreSQL; number → the text that PostgreSQL reads, and the key as it is shown."""

    name: str
    text: Callable[[int], str]
    shown: Callable[[int], str]


def _column(name: str, declared: str, *samples: str) -> ColumnType:
    return ColumnType(name, declared, samples)


COLUMNS: Mapping[str, ColumnType] = {
    "smallint": _column("smallint", "int", "0", "7", "-32768"),
    "bigint": _column("bigint", "bigint", "9223372036854775807", "0", "-42"),
    "numeric": _column("numeric", "decimal(30,9)", "12345678901234567890.123456789", "-0.000000001", "0", "19.00"),
    "money-like": _column("numeric(10,2)", "decimal(10,2)", "5", "-0.01", "12345678.90"),
    "real": _column("real", "double", "0.1", "1e20", "-7.25"),
    "double": _column("double precision", "double", "0.1", "1e300", "NaN", "-Infinity"),
    "text": _column("text", "string", "", " ü🙂", "NULL", 'it\'s \\ "x"\n'),
    "char": _column("char(5)", "string", "a", "b c", "abcde"),
    "varchar": _column("varchar(12)", "string", "a ", "a", "{1,2}"),
    "uuid": _column("uuid", "string", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff8b86d011b42d00c04fc96400"),
    "inet": _column("inet", "string", "10.0.0.1", "10.0.0.0/8", "::1", "fe80::/10"),
    "cidr": _column("cidr", "string", "10.0.0.0/8", "10.0.0.1/32"),
    "timestamptz": _column(
        "timestamptz", "timestamp", "2013-07-01 12:00:00.123456+02", "1883-11-18 12:00Z", "infinity"
    ),
    "timestamp": _column("timestamp", "timestamp", "2013-07-01 12:00:00.5", "9999-12-31 23:59:59.999999", "2013-01-01"),
    "date": _column("date", "date", "2013-01-01", "2013-01-02", "infinity"),
    "time": _column("time", "string", "12:00:00.5", "24:00:00"),
    "interval": _column("interval", "string", "5 seconds", "1 mon -2 days 03:00", "-1 year"),
    "boolean": _column("boolean", "boolean", "true", "false"),
    "bytea": _column("bytea", "string", "\\x00ff", ""),
    "jsonb": _column("jsonb", "json", '{"b": 1.50, "a": [null, true, "ü"]}', "[1, 2]", "{}"),
    "jsonb as text": _column("jsonb", "string", '{"b": [], "a": {"x": 1e2}}', "true", "[]"),
    "int[]": _column("int[]", "string", "{1,NULL,-3}", "{}", "{{1,2},{3,4}}"),
    "text[]": _column("text[]", "string", '{a,"b c","",NULL,"NULL"}', "{}", '{"\\\\",","}'),
    "enum": _column("mood", "string", "sad", "so so", "glad"),
    "int4range": _column("int4range", "string", "[1,5)", "empty", "(,3]"),
    "daterange": _column("daterange", "string", "[2013-01-01,2013-02-01)", "[2013-01-01,)"),
}
"""By a name for people."""


def _uuid(number: int) -> str:
    return f"{number:08x}-00ab-4cde-8f01-23456789abcd"


def _day(number: int) -> str:
    return f"2013-{1 + number // 28:02}-{1 + number % 28:02}"


def _clock(number: int) -> str:
    return f"{number // 60:02}:{number % 60:02}"


KEYS: Mapping[str, KeyColumn] = {
    "text": KeyColumn("text", lambda n: f"K {n} ü", lambda n: f"K {n} ü"),
    "varchar": KeyColumn("varchar(20)", lambda n: f"k{n}", lambda n: f"k{n}"),
    "char": KeyColumn("char(8)", lambda n: f"k{n}", lambda n: f"k{n}"),
    "bigint": KeyColumn("bigint", lambda n: f"{n - 50}", lambda n: f"{n - 50}"),
    "numeric": KeyColumn("numeric(12,2)", lambda n: f"{n}.50", lambda n: f"{n}.5"),
    "uuid": KeyColumn("uuid", lambda n: _uuid(n).upper(), _uuid),
    "inet": KeyColumn("inet", lambda n: f"10.0.0.{n}", lambda n: f"10.0.0.{n}"),
    "date": KeyColumn("date", _day, _day),
    "timestamptz": KeyColumn(
        "timestamptz", lambda n: f"2013-01-01 02:{_clock(n)}+02", lambda n: f"2013-01-01T00:{_clock(n)}.000000Z"
    ),
}
"""By a name for people. Numbers are below 200."""
