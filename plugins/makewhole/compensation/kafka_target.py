"""A topic as a target: a chunk is one transaction of records and marker."""

from collections.abc import Callable, Mapping

from makewhole.compensation.targets import Chunk, Done, require_receipts_kept
from makewhole.kafka.replay import ReplayRecord, ReplayWriter, TopicRules, lineage, now_ms
from makewhole.model.errors import TransientError
from makewhole.model.plan import Action, Plan

_ATTEMPTS = 3


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
