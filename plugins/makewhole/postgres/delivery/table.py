"""Find what weakens the delivery into a table, or out of it, in PostgreSQL's catalogue."""

from collections.abc import Iterator

from makewhole.model.connection import PostgresConnection
from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.errors import RefusedError
from makewhole.postgres.connect import connect
from makewhole.postgres.delivery.captured import weak_capture
from makewhole.postgres.read.expressions import regclass_text
from makewhole.postgres.table import describe_table
from makewhole.sql import PgConnection, statements_of
from makewhole.tables.shape import TableShape

_run = statements_of("delivery")


def weaknesses(connection: PostgresConnection, shape: TableShape, claim: TableClaim) -> list[Weakness]:
    """Return what weakens what is claimed of a table. Nothing is written.

    Raises:
        TransientError: the server does not answer.
        PermanentError: it refuses.
    """
    with connect(connection, f"asking how {shape.point.table} is kept") as session:
        session.set_session(readonly=True)
        return list(_found(session, connection, shape, claim))


def _found(
    session: PgConnection, connection: PostgresConnection, shape: TableShape, claim: TableClaim
) -> Iterator[Weakness]:
    table = regclass_text(shape.point)
    if claim.forbids_loss:
        yield from _of_server(session, connection)
        yield from _unlogged(session, shape, table)
        if claim.is_target:
            yield from _swallowed(session, shape, table)
    if claim.is_keyed:
        yield from _not_unique(session, shape, claim)
    if claim.is_captured and claim.forbids_loss:
        yield from weak_capture(session, connection, shape)


def _of_server(session: PgConnection, connection: PostgresConnection) -> Iterator[Weakness]:
    """Yield the settings by which a commit may be gone after the server, or its machine, has died."""
    (server,) = _run(session, "server")
    thing = f"database {server.database} of connection {connection.id}"
    because = "a row that was committed may be gone when the server dies, and its offset, or its record, is not"
    for setting in ("fsync", "full_page_writes"):
        if getattr(server, setting) == "off":
            yield Weakness(
                severity=Severity.BROKEN, thing=thing, setting=setting, value="off", expected="on", because=because,
                remedy=f"alter system set {setting} = on; select pg_reload_conf()", fault=Fault.STORE_FORGETS,
            )  # fmt: skip
    roles = [row.role for row in _run(session, "overridden")]
    if server.synchronous_commit == "off" and "" not in roles:
        roles.insert(0, "")
    for role in roles:
        whom = f"alter role {_quoted(role)}" if role else f"alter database {_quoted(server.database)}"
        yield Weakness(
            severity=Severity.BROKEN, thing=thing, setting="synchronous_commit",
            value=f"off for role {role}" if role else "off", expected="on", because=because,
            remedy=f"{whom} set synchronous_commit = on", fault=Fault.STORE_FORGETS,
        )  # fmt: skip


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unlogged(session: PgConnection, shape: TableShape, table: str) -> Iterator[Weakness]:
    for relation in _run(session, "relations", table=table):
        if relation.persistence == "u":
            yield Weakness(
                severity=Severity.BROKEN, thing=f"table {shape.point.table}", setting="persistence",
                value=f"{relation.name} is unlogged", expected="logged",
                because="after a crash of the server it is empty, whatever was committed",
                remedy=f"alter table {relation.name} set logged", fault=Fault.STORE_FORGETS,
            )  # fmt: skip


def _swallowed(session: PgConnection, shape: TableShape, table: str) -> Iterator[Weakness]:
    """Yield what may take a row away that a loader has written, without an error."""
    thing = f"table {shape.point.table}"
    because = "a loader's insert succeeds, its offset is committed, and the row is not there"
    for trigger in _run(session, "triggers", table=table):
        if trigger.may_return_null is not False:
            is_known = trigger.may_return_null is True
            value = "its function returns null" if is_known else "what its function returns cannot be read"
            yield Weakness(
                severity=Severity.RISK if is_known else Severity.UNKNOWN, thing=thing,
                setting=f"trigger {trigger.name}", value=value, expected="the row, or an error", because=because,
                remedy=f"have it raise instead, or: alter table {table} disable trigger {_quoted(trigger.name)}",
                fault=Fault.RESEND_IN_PART,
            )  # fmt: skip
    for rule in _run(session, "rules", table=table):
        if rule.is_instead:
            yield Weakness(
                severity=Severity.RISK, thing=thing, setting=f"rule {rule.name}", value="does something else instead",
                expected="no rule", because=because, remedy=f"drop rule {_quoted(rule.name)} on {table}",
                fault=Fault.RESEND_IN_PART,
            )  # fmt: skip


def _not_unique(session: PgConnection, shape: TableShape, claim: TableClaim) -> Iterator[Weakness]:
    """Yield a table of which no unique index promises one row for a key, or of which that cannot be known."""
    point = shape.point
    try:
        is_unique = describe_table(session, point).has_one_row_per(point)
    except RefusedError:
        return  # a view: its tables are not those of the file
    if not is_unique:
        columns = ", ".join(_quoted(column) for column in point.key_places)
        because = (
            "what overwrites by key finds no row to overwrite, and adds one"
            if claim.overwrites
            else "what dies between its rows and its offset writes the rows again, and nothing keeps them out"
        )
        yield Weakness(
            severity=Severity.BROKEN, thing=f"table {point.table}", setting="unique key",
            value="none of the compared key", expected=f"one on ({columns})", because=because,
            remedy=f"create unique index concurrently on {regclass_text(point)} ({columns})"
            + ("" if claim.overwrites else "; or keep the offsets with the rows, and write `progress:` at the hop"),
            fault=Fault.PROCESSED_FIRST,
        )  # fmt: skip
