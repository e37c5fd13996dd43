"""Find what keeps changes of a table from the connector that reads them from PostgreSQL's log."""

from collections.abc import Iterator
from typing import Any

from makewhole.model.connection import PostgresConnection
from makewhole.model.delivery.weaknesses import Fault, Severity, Weakness
from makewhole.model.text import size
from makewhole.postgres.read.expressions import regclass_text
from makewhole.sql import PgConnection, statements_of
from makewhole.tables.shape import TableShape

_run = statements_of("delivery")
_PGOUTPUT = "pgoutput"
_NOTHING, _DEFAULT, _FULL = "n", "d", "f"
_LOST, _UNRESERVED = "lost", "unreserved"
_NEVER_SENT = "rows that are committed never become records, and nothing in Kafka shows that"


def weak_capture(session: PgConnection, connection: PostgresConnection, shape: TableShape) -> Iterator[Weakness]:
    """Yield what weakens the capture of the changes of a table: the log, its slots, publications, replica identity."""
    (server,) = _run(session, "server")
    database = f"database {server.database} of connection {connection.id}"
    if server.wal_level != "logical":
        yield _broken(
            database, "wal_level", server.wal_level, "logical", "no change can be read from the log",
            "alter system set wal_level = logical, then restart the server",
        )  # fmt: skip
        return
    slots = _run(session, "slots")
    if not slots:
        yield _broken(
            database, "replication slot", "none", "the connector's", _NEVER_SENT,
            "start the connector with `slot.name`, and have it take a snapshot (`snapshot.mode`)",
        )  # fmt: skip
    for slot in slots:
        yield from _of_slot(slot)
    yield from _of_table(session, shape, is_published=any(slot.plugin == _PGOUTPUT for slot in slots))


def _of_slot(slot: Any) -> Iterator[Weakness]:
    thing = f"replication slot {slot.name}"
    behind = "" if slot.behind_bytes is None else f", {size(max(slot.behind_bytes, 0))} behind"
    if slot.status == _LOST:
        yield _broken(
            thing, "wal_status", "lost", "reserved", "the log that it had not read is gone: " + _NEVER_SENT,
            f"select pg_drop_replication_slot('{slot.name}'), and have the connector take a new snapshot; a higher "
            "max_slot_wal_keep_size for the next time",
        )  # fmt: skip
    elif slot.status == _UNRESERVED:
        yield _risk(
            thing, "wal_status", f"unreserved{behind}", "reserved", "the next checkpoint may remove what it needs",
            "start the connector; alter system set max_slot_wal_keep_size = …",
        )  # fmt: skip
    elif not slot.is_active:
        yield _risk(
            thing, "active", f"false{behind}", "true", "no connector reads it: what is committed now is not sent",
            "start the connector; where it is no one's any more: "
            f"select pg_drop_replication_slot('{slot.name}'), since it holds the log back",
        )  # fmt: skip


def _of_table(session: PgConnection, shape: TableShape, *, is_published: bool) -> Iterator[Weakness]:
    table, thing = regclass_text(shape.point), f"table {shape.point.table}"
    publications = _run(session, "publications", table=table)
    if is_published and not publications:
        yield _broken(
            thing, "publication", "none has it", "the connector's (`publication.name`)", _NEVER_SENT,
            f"alter publication … add table {table}",
        )  # fmt: skip
    elif publications and not any(row.has_all and not row.is_filtered for row in publications):
        names = ", ".join(row.name for row in publications)
        yield _risk(
            thing, "publication", f"{names} leaves rows or operations out", "insert, update, delete, without a filter",
            _NEVER_SENT, f"alter publication … set (publish = 'insert, update, delete'); set table {table}",
        )  # fmt: skip
    relations = _run(session, "relations", table=table)
    without = [
        relation
        for relation in relations
        if relation.kind == "r"
        and (
            relation.replica_identity == _NOTHING
            or (relation.replica_identity == _DEFAULT and not relation.has_primary_key)
        )
    ]
    for relation in without:
        yield _risk(
            thing, "replica identity", f"none of {relation.name}", "default with a primary key, or full",
            "updates and deletions are refused, or sent without what they are of",
            f"alter table {relation.name} replica identity full, or add a primary key",
        )  # fmt: skip
    toasted = [row.name for row in _run(session, "toasted", table=table, columns=sorted(shape.compare))]
    partial = [relation for relation in relations if relation.kind == "r" and relation.replica_identity != _FULL]
    if toasted and partial and not without:
        yield _risk(
            thing, "replica identity", f"not full, and {', '.join(toasted)} may be stored apart", "full",
            "an update that leaves a long value alone is sent with a placeholder in its place, and cannot be compared",
            f"alter table {partial[0].name} replica identity full, or the connector's reselect post processor",
        )  # fmt: skip


def _broken(thing: str, setting: str, value: str, expected: str, because: str, remedy: str) -> Weakness:
    return _weak(Severity.BROKEN, thing, setting, value, expected, because, remedy)


def _risk(thing: str, setting: str, value: str, expected: str, because: str, remedy: str) -> Weakness:
    return _weak(Severity.RISK, thing, setting, value, expected, because, remedy)


def _weak(
    severity: Severity, thing: str, setting: str, value: str, expected: str, because: str, remedy: str
) -> Weakness:
    return Weakness(
        severity=severity,
        thing=thing,
        setting=setting,
        value=value,
        expected=expected,
        because=because,
        remedy=remedy,
        fault=Fault.UNSENT,
    )
