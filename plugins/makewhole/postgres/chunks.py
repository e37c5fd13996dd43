"""Write chunks of plans to the tables of a database, and forecast what they would do."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from makewhole.model.connection import PostgresConnection
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.postgres.connect import connect
from makewhole.postgres.read.erased import erased_in
from makewhole.postgres.write.apply import apply_chunk
from makewhole.postgres.write.dry_run import forecast_chunk, read_only_session, read_receipts
from makewhole.postgres.write.effects import effects, erase_actions, forget_plan, kept_of_plan
from makewhole.postgres.write.receipts import ensure_schema, fence, receipts
from makewhole.sql import PgConnection
from makewhole.tables.effects import Effect
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import RowItem
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow
from makewhole.tables.writing import Guard


@dataclass(frozen=True, kw_only=True)
class PostgresWriter:
    """A session that writes chunks (`TableWriter`): each is one transaction of rows, effects and receipt."""

    session: PgConnection

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        with self.session:
            fence(self.session, plan.plan, plan.target, plan.lease_epoch)
            return receipts(self.session, plan.plan, plan.target, plan.plan_sha256)

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        with self.session:
            fence(self.session, plan, target, lease_epoch)
            yield from effects(self.session, plan, target)

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        def in_transaction(session: PgConnection, of_chunk: Sequence[RowItem]) -> Mapping[int, Refusal]:
            return guard(lambda keys: erased_in(session, point, keys), of_chunk)

        return apply_chunk(self.session, point, chunk, items, in_transaction)

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        with self.session:
            return kept_of_plan(self.session, plan, target)

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        with self.session:
            fence(self.session, plan, target, lease_epoch)
            forget_plan(self.session, plan, target, only_rows_aside=only_rows_aside)

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        with self.session:
            fence(self.session, plan, target, lease_epoch)
            return erase_actions(self.session, plan, target, actions[plan])


@dataclass(frozen=True, kw_only=True)
class PostgresForecaster:
    """A session that the server lets write nothing (`ChunkForecaster`)."""

    session: PgConnection

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return read_receipts(self.session, plan)

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        with self.session:
            return erased_in(self.session, point, keys)

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        return forecast_chunk(self.session, point, chunk, items, choose)


@contextmanager
def open_writer(connection: PostgresConnection, purpose: str) -> Iterator[PostgresWriter]:
    """Open a writer; the tables in which it keeps receipts and effects are made where they are not there yet."""
    with connect(connection, purpose) as session:
        ensure_schema(session)
        yield PostgresWriter(session=session)


@contextmanager
def open_forecaster(connection: PostgresConnection) -> Iterator[PostgresForecaster]:
    """Open what forecasts chunks."""
    with read_only_session(connection) as session:
        yield PostgresForecaster(session=session)
