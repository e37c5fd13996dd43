"""The two kinds of target behind one face: what is done there already, and how one more chunk is done."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from makewhole.compensation.payloads import Payload
from makewhole.compensation.plan import place_of
from makewhole.kafka.replay import ReplayRecord, ReplayWriter, TopicRules, lineage, now_ms
from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.pipeline import Pipeline, Point, Remedy, TablePoint, TopicPoint
from makewhole.model.plan import Action, Plan
from makewhole.postgres.apply import Item, apply_chunk
from makewhole.postgres.connect import Session, connect
from makewhole.postgres.quarantine import QuarantineRows
from makewhole.postgres.receipts import ChunkId, ensure_schema, receipts
from makewhole.postgres.tables import Row
from makewhole.postgres.upsert import UpsertRow

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Target:
    """A point that compensation writes, and the way to it."""

    point: Point
    connection: Connection


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One transaction's worth, in order. `decided` are the refusals that the journal already holds."""

    number: int
    actions: tuple[Action, ...]
    payloads: Mapping[int, Payload]
    decided: Mapping[int, str] = field(default_factory=dict)

    @property
    def seqs(self) -> tuple[int, ...]:
        return tuple(action.seq for action in self.actions)


@dataclass(frozen=True, kw_only=True)
class Done:
    """A chunk that happened, as the target tells it. `actions` None: the target does not say, count them."""

    chunk: int
    place: str
    actions: int | None = None
    refused: Mapping[int, str] = field(default_factory=dict)


class TargetWriter(Protocol):
    """What the runner asks of a target. `guard` raises when the lease is lost or the plan was stopped."""

    def done(self) -> list[Done]:
        """Chunks that happened, from 0 on without holes. Fences every earlier runner where the target can."""
        ...

    def unfit(self, chunk: Chunk) -> Mapping[int, str]:
        """Actions that the target would not take, decided before the chunk is written."""
        ...

    def write(self, chunk: Chunk, guard: Callable[[], None]) -> Done:
        """Do the chunk, or find that it is done."""
        ...


def targets_of(pipeline: Pipeline, connections: Mapping[str, Connection]) -> dict[str, Target]:
    """Every point of the pipeline whose connection is given, by name."""
    return {
        name: Target(point=point, connection=connections[point.connection])
        for name, point in pipeline.points.items()
        if point.connection in connections
    }


def open_writer(stack: ExitStack, plan: Plan, name: str, target: Target, lease_epoch: int) -> TargetWriter:
    """The writer for a target, closed with the stack."""
    if isinstance(target.point, TopicPoint) and isinstance(target.connection, KafkaConnection):
        writer = ReplayWriter(target.connection, target.point.topic, f"replay-{plan.id}-{name}")
        stack.callback(writer.close)
        return KafkaTarget(plan, writer)
    if isinstance(target.point, TablePoint) and isinstance(target.connection, PostgresConnection):
        session = stack.enter_context(connect(target.connection))
        ensure_schema(session)
        return PostgresTarget(plan, target.point, session, lease_epoch)
    raise RefusedError(f"point {name} and its connection {target.connection.id} are of different kinds")


def require_same_places(actions: Sequence[Action], targets: Mapping[str, Target]) -> None:
    """The plan names the topics and tables it was made for; the pipeline file must still say the same.

    Raises:
        RefusedError: a target is not given, or is another thing now.
    """
    for action in actions:
        target = targets.get(action.target)
        if target is None:
            raise RefusedError(f"the plan writes to {action.target}, and no connection to it is given")
        if place_of(target.point) != action.before.get("place"):
            raise RefusedError(
                f"{action.target} is {place_of(target.point)} now and was {action.before.get('place')} when the plan "
                "was frozen; open a new revision of the window"
            )


class KafkaTarget:
    """Chunks as transactions of records and marker."""

    def __init__(self, plan: Plan, writer: ReplayWriter) -> None:
        self._plan, self._writer = plan, writer
        self._rules: TopicRules | None = None

    def done(self) -> list[Done]:
        marker = self._writer.open()
        self._rules = self._writer.rules()
        return [self._done(chunk) for chunk in range(marker or 0)]

    def unfit(self, chunk: Chunk) -> Mapping[int, str]:
        rules, now = self._rules or self._writer.rules(), now_ms()
        reasons = {action.seq: rules.refusal(self._record(chunk, action), now) for action in chunk.actions}
        return {seq: reason for seq, reason in reasons.items() if reason is not None}

    def write(self, chunk: Chunk, guard: Callable[[], None]) -> Done:
        """A failed attempt is asked about, never assumed: a new producer fences the old one, then reads the marker."""
        records = [self._record(chunk, action) for action in chunk.actions if action.seq not in chunk.decided]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._writer.write(chunk.number, records)
                return self._done(chunk.number)
            except TransientError:
                if attempt == _ATTEMPTS:
                    raise
                guard()  # fenced by a newer runner: stop here; by an older one: carry on
                marker = self._writer.open() or 0
                if marker > chunk.number:
                    return self._done(chunk.number)
                require_receipts_kept(self._writer.marker, marker, chunk.number, chunk.number)
                guard()
        raise AssertionError("unreachable")

    def _done(self, chunk: int) -> Done:
        return Done(chunk=chunk, place=f"{self._writer.marker}, offset {chunk + 1}")

    def _record(self, chunk: Chunk, action: Action) -> ReplayRecord:
        payload = chunk.payloads[action.seq]
        mark = lineage(
            plan=self._plan.id,
            window=f"{self._plan.pipeline}/{self._plan.window}",
            seq=action.seq,
            origin=str(payload.extra["origin"]),
            chunk=chunk.number,
        )
        return ReplayRecord(
            key=payload.key,
            value=payload.value,
            headers=(*payload.headers, *mark),
            timestamp_ms=payload.timestamp_ms,
            partition=payload.partition,
        )


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
            plan=self._plan.id,
            seq=action.seq,
            key=action.key,
            survivor=rows[0] if keeps else None,
            extras=rows[keeps:],
        )


def require_receipts_kept(name: str, done: int, chunks_in_journal: int, chunks_planned: int) -> None:
    """The target must know at least what the journal has seen there.

    Raises:
        CorruptionError: the marker expired or the receipts were removed: nothing says any more what was written.
    """
    if done < chunks_in_journal:
        raise CorruptionError(
            f"{name} remembers {done} chunks of this plan and the journal has seen {chunks_in_journal}: "
            "the marker offset expired (offsets.retention.minutes) or receipts were removed. Nothing more is written; "
            "open a new revision of the window, which looks at what is really there"
        )
    if done > chunks_planned:
        raise CorruptionError(
            f"{name} says {done} chunks of this plan are done and it has only {chunks_planned}; somebody else "
            "uses its marker or receipts. Nothing more is written"
        )
