"""Make the parameters of statements, as every module of the journal does, and insert many rows."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from psycopg2.extras import execute_values

from makewhole.model.window import Window
from makewhole.sql import PgConnection, load_queries

_ROWS_OF_A_STATEMENT = 1000


def scope(window: Window) -> dict[str, Any]:
    """Return what names a revision of a window in the statements."""
    return {"pipeline": window.pipeline, "number": window.number, "revision": window.revision}


def insert_many(journal: PgConnection, file: str, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows, a statement for so many, so that they are never all in memory."""
    remaining = iter(rows)
    with journal.cursor() as cursor:
        while some := list(islice(remaining, _ROWS_OF_A_STATEMENT)):
            execute_values(cursor, load_queries(file)[statement].rstrip(";"), some, page_size=len(some))


def storable(text: str) -> str:
    """Escape NUL, which PostgreSQL's text cannot hold; the hash of a key still distinguishes such keys."""
    return text.replace("\x00", "\\u0000")
