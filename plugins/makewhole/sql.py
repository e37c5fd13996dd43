"""Load the named statements of `sql/queries/`, and name the types of the connection and cursor that run them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from psycopg2.extensions import connection as PgConnection  # noqa: N812 - it is a class
from psycopg2.extensions import cursor as PgCursor  # noqa: N812 - it is a class

__all__ = ["PgConnection", "PgCursor", "load_queries", "sql_root"]

_BLOCK = re.compile(r"^-- (?P<name>[a-z_]+) --$", re.MULTILINE)


def sql_root() -> Path:
    """Return `sql/` of the checkout, or the copy that an installed wheel carries."""
    checkout = Path(__file__).resolve().parents[2] / "sql"
    if (checkout / "migrations").is_dir():
        return checkout
    return Path(str(resources.files("makewhole") / "_sql"))


@cache
def load_queries(name: str) -> Mapping[str, str]:
    """Return the named statements of `sql/queries/<name>.sql`, each block headed `-- statement_name --`."""
    text = (sql_root() / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    marks = list(_BLOCK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {mark["name"]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
