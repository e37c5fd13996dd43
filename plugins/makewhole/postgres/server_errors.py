"""Sort the errors of PostgreSQL: which of them pass, and in which words a person reads them. No data are quoted."""

import re
from collections.abc import Sequence

import psycopg2

from makewhole.postgres_session import is_transient_code

_REMEDIES = {
    "22": "A value in one of these columns stops the statement: mend it, or name a view that leaves it out",
    "42": "`makewhole check --tables` names each table and column that does not fit the pipeline file",
}
_NO_RIGHT = "42501"
_DENIED = re.compile(r"permission denied for (?P<kind>table|view|relation|schema|sequence) (?P<name>.+)")
"""The server's words on a missing right (aclchk.c, aclcheck_error): the object alone, never data."""

_WRITES = re.compile(rb"\b(insert into|update|delete from|lock table)\b", re.IGNORECASE)
_BY_ROW_SECURITY = "check_enable_rls"
"""The function of the server that refuses to leave rows out without a word (`row_security` is off)."""
SEE_ALL_ROWS = (
    "Connect as a user that row security does not apply to (`alter role … bypassrls`, or the table's owner without "
    "`force row level security`)"
)


def is_transient(error: psycopg2.Error, *, is_closed: bool) -> bool:
    """Return whether a statement that failed may succeed when it is tried again. `is_closed`: the session ended: cut
    off in the middle of a COPY, libpq gives no more than an error without a code."""
    if error.pgcode is None:
        return is_closed or isinstance(error, psycopg2.OperationalError)
    return is_transient_code(error.pgcode)


def describe(error: psycopg2.Error, columns: Sequence[str] = ()) -> str:
    """An error in words that quote no data: its class, SQLSTATE, and the objects it names. `columns`: those that are
    known besides to be the cause."""
    diag = error.diag
    column = diag.column_name or ", ".join(columns)
    parts = [("constraint", diag.constraint_name), ("column", column), ("table", diag.table_name)]
    named = ", ".join(f"{kind} {name}" for kind, name in parts if name)
    return f"{type(error).__name__} ({error.pgcode or 'no SQLSTATE'}){': ' + named if named else ''}"


def remedy(error: psycopg2.Error, user: str | None = None) -> str:
    """Return what to do about an error that no retry mends. `user` is whose session met it."""
    code = error.pgcode or ""
    if error.diag.source_function == _BY_ROW_SECURITY:
        return SEE_ALL_ROWS
    if code == _NO_RIGHT:
        return _missing_right(error, user or "the connection's user")
    return _REMEDIES.get(code[:2], "The server's log has its words, which can quote rows and are left out here")


def _missing_right(error: psycopg2.Error, user: str) -> str:
    """Return which right is missing on which object, and the statement that grants it."""
    denied = _DENIED.match(error.diag.message_primary or "")
    if denied is None:
        return (
            f"Grant {user} the right to do it (GRANT SELECT to read a table); docs/rights.md lists what each role needs"
        )
    kind, name = denied["kind"], denied["name"]
    query = getattr(error.cursor, "query", None) or b""
    rights = "select, insert, update, delete" if _WRITES.search(query) else "select"
    grants = {"schema": f"usage on schema {name}", "sequence": f"usage on sequence {name}"}
    return (
        f"A right is missing on {kind} {name}. Run as its owner: grant {grants.get(kind, f'{rights} on {name}')} to "
        f"{user} (docs/rights.md lists what each role needs)"
    )
