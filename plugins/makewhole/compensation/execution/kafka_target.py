"""Write the chunks of a plan to a topic: each is one transaction of records and marker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from makewhole.compensation.execution.targets import Arrivals, Chunk, DoneChunk, PlanAtTarget
from makewhole.kafka.offsets import describe_topic
from makewhole.kafka.replay import ReplayWriter, now_ms
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords, TopicRules
from makewhole.model.errors import CorruptionError, TransientError
from makewhole.model.plan import Plan
from makewhole.model.positions import RecordPositions
from makewhole.model.refusal import Refusal

_ATTEMPTS = 3


class KafkaTarget:
    """A topic as the target of a plan."""

    def __init__(self, writer: ReplayWriter, plan: PlanAtTarget, rescan: Callable[[], int], arrivals: Arrivals) -> None:
        """`rescan` counts the chunks in the topic itself; it may raise CorruptionError or TransientError."""
        self._writer, self._at_target, self._rescan = writer, plan, rescan
        self._arrivals = arrivals
        self._rules: TopicRules | None = None
        self._topic_id = ""

    def done(self) -> list[DoneChunk]:
        self._rules = self._writer.rules()
        # Before the plan was begun nothing was written, so that a missing marker means 0 chunks.
        chunks = (
            self._done_chunks(self._at_target.chunks_in_journal())
            if self._at_target.is_begun
            else self._writer.open() or 0
        )
        self._topic_id = describe_topic(self._writer.connection, self._writer.topic).topic_id
        return [self._done(chunk) for chunk in range(chunks)]

    def prepare(self, chunk: Chunk) -> "_PreparedRecords":
        records = chunk_records(self._at_target.plan, chunk)
        records.prepare()
        return _PreparedRecords(self, chunk, records)

    def refusals(self, chunk: Chunk, records: ReplayRecords) -> Mapping[int, Refusal]:
        """Return the refusals of the actions that the topic would not take now, and of those whose key has arrived. How
        many partitions it has is asked last, right before the records are sent."""
        arrived = self._arrivals.arrived(chunk.rows)
        self._rules = self._writer.rules_with_partitions()
        return {**arrived, **records.refusals(self._rules, now_ms())}

    def write(
        self, chunk: int, records: ReplayRecords, guard: Callable[[], None], on_sent: Callable[[], None]
    ) -> DoneChunk:
        """Write a chunk; after a failed attempt, fence the old producer and read by the marker if it happened."""
        records = records.lasting(self._rules or self._writer.rules(), now_ms())
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._writer.write(chunk, records, on_sent, partial(self._note, chunk))
                return self._done(chunk)
            except TransientError:
                if attempt == _ATTEMPTS:
                    raise
                guard()  # raises when a newer runner fenced this one
                if self._done_chunks(chunk) > chunk:
                    return self._done(chunk)
                guard()
        raise AssertionError("unreachable")

    def _note(self, chunk: int, positions: RecordPositions) -> None:
        """Note where the records of a chunk stand, which are not committed yet."""
        self._at_target.record_positions(chunk, self._topic_id, positions)
        self._arrivals.note_own(positions)

    def _done_chunks(self, in_journal: int) -> int:
        """Fence every earlier producer, then return the number of chunks done. `in_journal`: those with receipts there.

        The journal follows each chunk before the next, so that the marker equals its number or is one ahead. Any other
        marker is lost or wrong, and the topic itself is scanned.
        """
        marker = self._writer.open()
        if self._at_target.is_done and marker is None:
            return self._at_target.chunks
        if marker is not None and in_journal <= marker <= in_journal + 1:
            return marker
        done = self._rescan()
        if marker is not None and marker > done:
            raise CorruptionError(
                f"{self._writer.marker} says that {marker} chunks of this plan are done, and {self._writer.topic} "
                f"holds {done} of them; another writer uses its marker. Nothing more is written"
            )
        return done

    def _done(self, chunk: int) -> DoneChunk:
        return DoneChunk(chunk=chunk, place=f"{self._writer.marker}, offset {chunk + 1}")


@dataclass(frozen=True)
class _PreparedRecords:
    """The records of a chunk, ready to be written to their topic."""

    target: KafkaTarget
    chunk: Chunk
    records: ReplayRecords

    def refusals(self) -> Mapping[int, Refusal]:
        return self.target.refusals(self.chunk, self.records)

    def write(
        self, refused: Mapping[int, Refusal], guard: Callable[[], None], on_sent: Callable[[], None]
    ) -> DoneChunk:
        return self.target.write(self.chunk.number, self.records.without(refused), guard, on_sent)


def chunk_records(plan: Plan, chunk: Chunk) -> ReplayRecords:
    """Return the records of a chunk with the lineage of their plan."""
    lineage = LineageHeaders(plan=plan.id, window=f"{plan.pipeline}/{plan.window}", chunk=chunk.number)
    return ReplayRecords(chunk.columns, lineage)
