"""Moves extra rows aside: kept whole, with how to put them back, and only when they are as the plan saw them."""

from dataclasses import dataclass

from psycopg2 import sql

from makewhole.journal.database import load_queries
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.connect import Session
from makewhole.postgres.tables import Row, Table, lock_rows_of_key, statement


@dataclass(frozen=True, kw_only=True)
class QuarantineRows:
    """One action: `extras` go, `survivor` (none when the whole key is unexpected) stays."""

    plan: str
    seq: int
    key: str
    survivor: Row | None
    extras: tuple[Row, ...]


def require_quarantine_possible(connection: Session, table: Table) -> None:
    """Deleting here must not reach into other tables.

    Raises:
        RefusedError: a foreign key on this table cascades.
    """
    with connection.cursor() as cursor:
        cursor.execute(load_queries("target")["cascading_references"], {"schema": table.schema, "name": table.name})
        names = [row[0] for row in cursor.fetchall()]
    if names:
        raise RefusedError(
            f"rows of {table.schema}.{table.name} cannot be quarantined: deleting one also changes other tables "
            f"through {', '.join(names)}; repair these duplicates by hand"
        )


def move_aside(connection: Session, table: Table, point: TablePoint, item: QuarantineRows) -> str | None:
    """Move the extra rows, all or none, in the caller's transaction. Returns the reason when it is refused.

    The rows of the key are locked first, so what is compared is what is deleted.
    """
    now = lock_rows_of_key(connection, table, point, item.key)
    refusal = _difference(now, item)
    if refusal is None:
        for row in item.extras:
            if not _move(connection, table, item, row):
                raise RefusedError("stale: the table did not let an extra row go (a trigger or a policy kept it)")
    return refusal


def _difference(now: list[Row], item: QuarantineRows) -> str | None:
    """Why what is there is not what the plan saw, if so."""
    seen = {row for row in (item.survivor, *item.extras) if row is not None}
    current = set(now)
    if seen <= current:
        return None
    if item.survivor is not None and item.survivor not in current and not current - seen:
        return "erased: the row that was to stay is gone, so the extra rows may be the only copy left"
    if current - seen:
        return "stale: rows of this key changed after the plan was made"
    return "erased: an extra row of this key is gone already"


def _move(connection: Session, table: Table, item: QuarantineRows, row: Row) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            statement("move_to_quarantine", table=table.identifier),
            {
                "plan": item.plan,
                "seq": item.seq,
                "ctid": row.ctid,
                "table_oid": row.table_oid,
                "source_table": f"{table.schema}.{table.name}",
                "how_to_restore": _how_to_restore(connection, table, item, row),
            },
        )
        return cursor.rowcount == 1


def _how_to_restore(connection: Session, table: Table, item: QuarantineRows, row: Row) -> str:
    return statement(
        "restore_row",
        table=table.identifier,
        columns=sql.SQL(", ").join(sql.Identifier(name) for name in table.writable),
        plan=sql.Literal(item.plan),
        seq=sql.Literal(item.seq),
        place=sql.Literal(row.ctid),
    ).as_string(connection)
