"""Run the named statements of `sql/queries/`, name the types of the connection and cursor that do, feed COPY.

Rows are read by name: they are tuples whose fields are the statement's columns, each of which has a name of its own;
`record` makes an object of a dataclass with these fields of one.
"""

import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

import msgspec
from psycopg2.extensions import connection as PgConnection  # noqa: N812 - it is a class
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

from makewhole.shipped import shipped

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "CopyLines",
    "PgConnection",
    "PgCursor",
    "Run",
    "load_queries",
    "named_rows",
    "record",
    "records",
    "rows_in_pieces",
    "single_value",
    "sql_root",
    "statements_of",
]

_Made = TypeVar("_Made", bound="DataclassInstance")

_LINES_TOGETHER = 10_000
_ROWS_OF_A_PIECE = 10_000

_BLOCK = re.compile(r"^-- (?P<name>[a-z_]+) --$", re.MULTILINE)


def sql_root() -> Path:
    """Return the folder with the statements and the migrations."""
    return shipped("sql")


@cache
def load_queries(name: str) -> Mapping[str, str]:
    """Return the named statements of `sql/queries/<name>.sql`, each block headed `-- statement_name --`."""
    text = (sql_root() / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    marks = list(_BLOCK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {mark["name"]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


class Run(Protocol):
    """Runs a named statement. Returns its rows; none where it has no result."""

    def __call__(self, session: PgConnection, statement: str, /, **values: Any) -> list[Any]: ...


def statements_of(file: str) -> Run:
    """Return what runs the statements of `sql/queries/<file>.sql`."""

    def run(session: PgConnection, statement: str, /, **values: Any) -> list[Any]:
        with session.cursor() as cursor:
            cursor.execute(load_queries(file)[statement], values)
            return named_rows(cursor)

    return run


def rows_in_pieces(
    session: PgConnection, file: str, name: str, parameters: Mapping[str, Any], most: int = _ROWS_OF_A_PIECE
) -> Iterator[list[Any]]:
    """Yield the rows of a statement, so many at a time: no more are in memory, however many there are.

    They are read in the transaction of the session, which must not end meanwhile.
    """
    with session.cursor(f"makewhole_{uuid4().hex}") as cursor:
        cursor.execute(load_queries(file)[name], parameters)
        while rows := named_rows(cursor, most):
            yield rows


def named_rows(cursor: PgCursor, most: int | None = None) -> list[Any]:
    """Return the rows of what a cursor has run, or the next so many; none where it has no result."""
    rows = cursor.fetchmany(most) if most else cursor.fetchall() if cursor.description else []
    kind = _kind_of_row(*(column.name for column in cursor.description or ()))
    return list(map(kind._make, rows))


@cache
def _kind_of_row(*names: str) -> Any:
    return namedtuple("Row", names)


def record(kind: type[_Made], row: Any, /, **more: Any) -> _Made:
    """Return a row as an object of a dataclass. Each field is the column of its name, or one of `more`; what is an
    enumeration, a dataclass or a tuple there is made of its JSON."""
    columns = {name: getattr(row, name) for name in kind.__dataclass_fields__ if name not in more}
    return msgspec.convert(columns | more, kind, str_keys=True)


def records(kind: type[_Made], rows: Iterable[Any], /, **more: Any) -> list[_Made]:
    """Return rows as objects of a dataclass; `more` is what all of them have besides."""
    return [record(kind, row, **more) for row in rows]


def single_value(rows: Iterable[Any]) -> Any:
    """Return the value of a statement that always gives one row of one column."""
    ((value,),) = rows
    return value


class CopyLines:
    """The file that COPY reads: lines as they come, so many at a time. `given` counts them."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.given = 0

    def read(self, _: int = -1) -> bytes:
        """Return some whole lines; nothing at the end."""
        return self._next(_LINES_TOGETHER)

    def readline(self, _: int = -1) -> bytes:
        """Return the next line; nothing at the end. The driver's types require this method."""
        return self._next(1)

    def _next(self, most: int) -> bytes:
        some = list(islice(self._lines, most))
        self.given += len(some)
        return b"".join(some)
