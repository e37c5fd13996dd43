"""A topic as a target: a chunk is one transaction of records and marker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.compensation.execution.targets import Chunk, DoneChunk, PlanAtTarget
from makewhole.kafka.replay import ReplayWriter, now_ms
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords, TopicRules
from makewhole.model.errors import CorruptionError, TransientError
from makewhole.model.plan import Plan

_ATTEMPTS = 3


class KafkaTarget:
    """Chunks as transactions of records and marker."""

    def __init__(self, writer: ReplayWriter, plan: PlanAtTarget, rescan: Callable[[], int]) -> None:
        """`rescan` asks the topic itself how many chunks it holds; it may raise CorruptionError or TransientError."""
        self._writer, self._at_target, self._rescan = writer, plan, rescan
        self._rules: TopicRules | None = None

    def done(self) -> list[DoneChunk]:
        # Nothing was written before the plan was begun: no marker says no more than that.
        chunks = (
            self._ask(self._at_target.chunks_in_journal()) if self._at_target.is_begun else self._writer.open() or 0
        )
        self._rules = self._writer.rules()
        return [self._done(chunk) for chunk in range(chunks)]

    def prepare(self, chunk: Chunk) -> "_PreparedRecords":
        records = chunk_records(self._at_target.plan, chunk)
        records.prepare()
        return _PreparedRecords(self, chunk.number, records)

    def refusals(self, records: ReplayRecords) -> Mapping[int, str]:
        """What the topic would not take now, by action number."""
        return records.refusals(self._rules or self._writer.rules(), now_ms())

    def write(
        self, chunk: int, records: ReplayRecords, guard: Callable[[], None], on_sent: Callable[[], None]
    ) -> DoneChunk:
        """A failed attempt is asked about, never assumed: a new producer fences the old one, then reads the marker."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._writer.write(chunk, records, on_sent)
                return self._done(chunk)
            except TransientError:
                if attempt == _ATTEMPTS:
                    raise
                guard()  # fenced by a newer runner: stop here; by an older one: carry on
                if self._ask(chunk) > chunk:
                    return self._done(chunk)
                guard()
        raise AssertionError("unreachable")

    def _ask(self, seen: int) -> int:
        """Fence every earlier producer, then how many chunks are done. `seen`: those that the journal has receipts of.

        The journal follows each chunk before the next, so that the marker is where the journal is, or one ahead. Any
        other is lost or wrong, and the topic itself is asked.
        """
        marker = self._writer.open()
        if self._at_target.is_done and marker is None:
            return self._at_target.chunks
        if marker is not None and seen <= marker <= seen + 1:
            return marker
        found = self._rescan()
        if marker is not None and marker > found:
            raise CorruptionError(
                f"{self._writer.marker} says that {marker} chunks of this plan are done, and {self._writer.topic} "
                f"holds {found} of them; somebody else uses its marker. Nothing more is written"
            )
        return found

    def _done(self, chunk: int) -> DoneChunk:
        return DoneChunk(chunk=chunk, place=f"{self._writer.marker}, offset {chunk + 1}")


@dataclass(frozen=True)
class _PreparedRecords:
    """The records of a chunk, and the topic that they are for."""

    target: KafkaTarget
    number: int
    records: ReplayRecords

    def refusals(self) -> Mapping[int, str]:
        return self.target.refusals(self.records)

    def write(self, refused: Mapping[int, str], guard: Callable[[], None], on_sent: Callable[[], None]) -> DoneChunk:
        return self.target.write(self.number, self.records.without(refused), guard, on_sent)


def replay_identity(plan_id: str, target: str) -> str:
    """The transactional id of a plan at a topic, and the group whose committed offset is its marker."""
    return f"replay-{plan_id}-{target}"


def chunk_records(plan: Plan, chunk: Chunk) -> ReplayRecords:
    """The records of a chunk as they are written: with the lineage of their plan."""
    lineage = LineageHeaders(plan=plan.id, window=f"{plan.pipeline}/{plan.window}", chunk=chunk.number)
    return ReplayRecords(chunk.columns, lineage)
