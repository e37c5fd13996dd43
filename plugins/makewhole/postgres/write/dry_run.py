"""What a chunk would do at a table now: judged by the guards of `apply`, in a transaction that can write nothing.

It takes no lock that anybody waits for, so that what it says is of the moment of its snapshot. What only writing tells
(constraints, triggers, policies) it does not know.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from makewhole.model.connection import PostgresConnection
from makewhole.model.pipeline import TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.tables import describe_table, statement
from makewhole.postgres.write import quarantine_many, restore_many, upsert_many
from makewhole.postgres.write.array_parameter import items_with
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.halving import RowItem, Way, divided
from makewhole.postgres.write.quarantine import QuarantineRows
from makewhole.postgres.write.receipts import ChunkId, ReceiptRow, receipts
from makewhole.postgres.write.restore import RestoreRow
from makewhole.postgres.write.row_change import RowChange, row_change
from makewhole.postgres.write.upsert_row import UpsertRow
from makewhole.sql import PgConnection

ChooseChanges = Callable[[Mapping[int, str]], Iterable[int]]
"""Given the refusals, the numbers of the actions to show."""


@dataclass(frozen=True, kw_only=True)
class ChunkForecast:
    """`refused` by action number with the reason; `changes` of the actions that were chosen."""

    refused: Mapping[int, str]
    changes: Mapping[int, RowChange]


@contextmanager
def read_only(target: PostgresConnection) -> Iterator[PgConnection]:
    """A session in which the server refuses to write, and each transaction sees one moment."""
    with connect(target) as session:
        session.set_session(isolation_level="REPEATABLE READ", readonly=True)
        yield session


def receipts_read(session: PgConnection, chunk: ChunkId) -> list[ReceiptRow]:
    """The receipts of the chunk's plan at its target; none where our tables are not there yet.

    Raises:
        CorruptionError: they do not fit the plan.
    """
    with session:
        with session.cursor() as cursor:
            cursor.execute(statement("has_receipts"))
            ((has_receipts,),) = cursor.fetchall()
        return receipts(session, chunk.plan, chunk.target, chunk.plan_sha256) if has_receipts else []


def judge(
    session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
) -> ChunkForecast:
    """What would become of the items if the chunk were done now, each as if nothing before it had been done.

    Raises:
        RefusedError: the table is gone or lost a column that the point names.
        TransientError: by way of `connect`.
    """
    with session:
        table = describe_table(session, point)
        opened = OpenChunk(session=session, table=table, point=point, id=chunk, holds_rows=False)
        refused = divided(opened, items, _JUDGING)
        chosen = set(choose(refused))
        changes = {
            item.seq: row_change(opened, item, is_refused=item.seq in refused) for item in items if item.seq in chosen
        }
        return ChunkForecast(refused=refused, changes=changes)


def _many(chunk: OpenChunk, items: Sequence[RowItem]) -> dict[int, str]:
    """Items of one kind."""
    match items[0]:
        case UpsertRow():
            upserts = cast(Sequence[UpsertRow], items)
            _require_readable(chunk, upserts)
            return upsert_many.refusals(chunk, upserts)
        case QuarantineRows():
            return quarantine_many.refusals(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many.refusals(chunk, cast(Sequence[RestoreRow], items))


def _one(chunk: OpenChunk, item: RowItem) -> str | None:
    return _many(chunk, [item]).get(item.seq)


def _require_readable(chunk: OpenChunk, items: Sequence[UpsertRow]) -> None:
    """The server reads every value as the table's types; what it cannot read it raises, as it would when writing."""
    chunk.run("values_read", upsert_many.as_upserts(items), items=items_with(chunk, "seq", "value"))


_JUDGING = Way(many=_many, one=_one)
