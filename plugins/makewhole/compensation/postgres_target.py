"""A table as a target: a chunk is one transaction of rows and receipt."""

from collections.abc import Callable, Mapping

from makewhole.compensation.payloads import Payload
from makewhole.compensation.targets import Chunk, Done
from makewhole.model.pipeline import Remedy, TablePoint
from makewhole.model.plan import Action, Plan
from makewhole.postgres.apply import Item, apply_chunk
from makewhole.postgres.connect import Session
from makewhole.postgres.quarantine import QuarantineRows
from makewhole.postgres.receipts import ChunkId, receipts
from makewhole.postgres.tables import Row
from makewhole.postgres.upsert import UpsertRow


class PostgresTarget:
    """Chunks as transactions of rows and receipt."""

    def __init__(self, plan: Plan, point: TablePoint, session: Session, lease_epoch: int) -> None:
        self._plan, self._point, self._session, self._epoch = plan, point, session, lease_epoch

    def done(self) -> list[Done]:
        with self._session:
            found = receipts(self._session, self._plan.id, self._point.name, self._plan.sha256)
        return [self._done(row.chunk, row.actions, row.refused) for row in found]

    def unfit(self, chunk: Chunk) -> Mapping[int, str]:  # noqa: ARG002
        return {}  # decided row by row, inside the transaction, and kept in its receipt

    def write(self, chunk: Chunk, guard: Callable[[], None]) -> Done:  # noqa: ARG002 - one attempt, no loop
        row = apply_chunk(
            self._session,
            self._point,
            ChunkId(
                plan=self._plan.id,
                plan_sha256=self._plan.sha256,
                target=self._point.name,
                chunk=chunk.number,
                lease_epoch=self._epoch,
            ),
            [self._item(action, chunk.payloads[action.seq]) for action in chunk.actions],
        )
        return self._done(row.chunk, row.actions, row.refused)

    def _done(self, chunk: int, actions: int, refused: Mapping[int, str]) -> Done:
        place = f"makewhole.receipt {self._plan.id}/{self._point.name}/{chunk}"
        return Done(chunk=chunk, place=place, actions=actions, refused=refused)

    def _item(self, action: Action, payload: Payload) -> Item:
        rows = tuple(Row(**row) for row in payload.extra["rows"])
        if action.remedy is Remedy.UPSERT:
            return UpsertRow(
                seq=action.seq,
                key=action.key,
                value=(payload.value or b"").decode(),
                columns=tuple(payload.extra["columns"]),
                before=rows,
            )
        keeps = int(payload.extra["keeps"])
        return QuarantineRows(
            seq=action.seq,
            key=action.key,
            survivor=rows[0] if keeps else None,
            extras=rows[keeps:],
        )
