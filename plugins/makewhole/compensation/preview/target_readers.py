"""Read either kind of target for a dry run: chunks that are done, refusals, and changes that would be made."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from makewhole.compensation.execution.kafka_target import chunk_records
from makewhole.compensation.execution.look_again.erased_items import keys_brought_back, refuse_erased
from makewhole.compensation.execution.look_again.look_again import LookAgain
from makewhole.compensation.execution.table_target import chunk_items
from makewhole.compensation.execution.targets import Chunk, Target
from makewhole.compensation.preview.dry_report import RecordToSend
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.keys import KeyProblem
from makewhole.journal.plans import StoredPlan
from makewhole.kafka.offsets import committed
from makewhole.kafka.replay import MARKER_TOPIC, now_ms, replay_identity, topic_rules
from makewhole.kafka.replay_records import Header
from makewhole.kinds import tables_of
from makewhole.model.connection import kafka_of
from makewhole.model.errors import ConfigurationError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.points import TablePoint, has_log
from makewhole.model.refusal import Refusal
from makewhole.tables.receipts import ChunkId
from makewhole.tables.row_change import RowChange
from makewhole.tables.writing import ChunkForecaster
from makewhole.window.formats import format_of

ChooseShown = Callable[[Collection[int]], Iterable[int]]
"""Choose, by the numbers of the refused actions, the numbers of the actions to show."""


@dataclass(frozen=True, kw_only=True)
class ChunkPreview:
    """The refusals of a chunk and the changes or records of the actions to show, by action number.

    `left_empty` and `locks_table` of a table are as `ChunkForecast` has them.
    """

    refused: Mapping[int, Refusal]
    shown: Mapping[int, RowChange | RecordToSend]
    left_empty: Mapping[str, int] = field(default_factory=dict)
    locks_table: bool = False


@dataclass(frozen=True, kw_only=True)
class ChunksDone:
    """The number of chunks that happened, from 0 on, and the refusals in them that the target knows."""

    chunks: int
    refused: Mapping[int, Refusal] = field(default_factory=dict)


class TargetReader(Protocol):
    """The requests of a dry run to a target. None of them writes."""

    def done(self) -> ChunksDone:
        """Return the chunks that happened.

        Raises:
            CorruptionError: receipts that do not fit the plan.
        """
        ...

    def forecast(self, chunk: Chunk, choose: ChooseShown) -> ChunkPreview:
        """Forecast a chunk that did not happen yet."""
        ...


def open_target_reader(
    stack: ExitStack, target: Target, stored: StoredPlan, chunks_in_journal: int, look_again: LookAgain
) -> TargetReader:
    """Open the reader of a target, closed with the stack. `chunks_in_journal`: number of chunks with receipts there."""
    point, connection = target.point, target.connection
    if has_log(point):
        return _TopicForecasts(stored, target, chunks_in_journal, look_again)
    return _TableForecasts(stored.plan, point, stack.enter_context(tables_of(connection).forecaster(point)), look_again)


class _TableForecasts:
    """A table, read in transactions that cannot write."""

    def __init__(self, plan: Plan, point: TablePoint, forecaster: ChunkForecaster, look_again: LookAgain) -> None:
        self._plan, self._point, self._forecaster, self._look_again = plan, point, forecaster, look_again

    def done(self) -> ChunksDone:
        receipts = self._forecaster.receipts(self._id(0))
        refused = {seq: refusal for receipt in receipts for seq, refusal in receipt.refused.items()}
        return ChunksDone(chunks=len(receipts), refused=refused)

    def forecast(self, chunk: Chunk, choose: ChooseShown) -> ChunkPreview:
        items = chunk_items(chunk, self._point.key)
        by_tombstones = self._look_again.erased_by_tombstones(self._point, keys_brought_back(items))
        erased = refuse_erased(self._point, partial(self._forecaster.erased, self._point), items, by_tombstones)
        kept_out = {**erased, **self._look_again.arrived(chunk.rows)}
        left = [item for item in items if item.seq not in kept_out]
        judged = self._forecaster.forecast_chunk(self._point, self._id(chunk.number), left, choose)
        return ChunkPreview(
            refused={**judged.refused, **kept_out},
            shown=judged.changes,
            left_empty=judged.left_empty,
            locks_table=judged.locks_table,
        )

    def _id(self, chunk: int) -> ChunkId:
        plan = self._plan
        return ChunkId(plan=plan.id, plan_sha256=plan.sha256, target=self._point.name, chunk=chunk, lease_epoch=0)


class _TopicForecasts:
    """A topic, of which metadata, settings, the plan's marker and what came since the window was judged are read: no
    producer is made, none is fenced."""

    def __init__(self, stored: StoredPlan, target: Target, chunks_in_journal: int, look_again: LookAgain) -> None:
        assert has_log(target.point), target.point.name
        self._stored, self._connection, self._name = stored, kafka_of(target.connection), target.point.name
        self._in_journal, self._look_again = chunks_in_journal, look_again
        self._format = format_of(target.point)
        self._rules = topic_rules(self._connection, target.point.topic)

    def done(self) -> ChunksDone:
        """Return the chunks by the marker; by the journal, which never leads, where the marker is lost."""
        plan = self._stored.plan
        if self._stored.began_at is None or plan.state is PlanState.DONE:
            return ChunksDone(chunks=self._in_journal)
        try:
            marker = committed(self._connection, replay_identity(plan.id, self._name), MARKER_TOPIC).get(0)
        except ConfigurationError:  # the plan was begun, and stopped before the topic of the markers was made
            marker = None
        return ChunksDone(chunks=max(marker or 0, self._in_journal))

    def forecast(self, chunk: Chunk, choose: ChooseShown) -> ChunkPreview:
        records = chunk_records(self._stored.plan, chunk)
        refused = {**self._look_again.arrived(chunk.rows), **records.refusals(self._rules, now_ms())}
        chosen = set(choose(refused))
        seqs = chunk.columns.column("seq").to_pylist()
        lasting = records.lasting(self._rules, now_ms()) if chosen else records
        messages = zip(seqs, lasting.messages(), strict=True) if chosen else ()
        return ChunkPreview(
            refused=refused,
            shown={seq: _record_to_send(self._format, *message) for seq, message in messages if seq in chosen},
        )


def _record_to_send(
    form: ValueFormat, value: bytes | None, key: bytes | None, headers: list[Header], partition: int, timestamp_ms: int
) -> RecordToSend:
    """Translate the producer's arguments, where -1 is any partition and 0 is now."""
    return RecordToSend(
        key=key,
        value=value,
        headers=tuple(headers),
        partition=None if partition < 0 else partition,
        timestamp_ms=timestamp_ms or None,
        fields=_field_names(form, value, headers),
    )


def _field_names(form: ValueFormat, value: bytes | None, headers: list[Header]) -> tuple[str, ...] | None:
    try:
        return tuple(form.document(value, [{"key": name, "value": content} for name, content in headers]))
    except KeyProblem:
        return None
