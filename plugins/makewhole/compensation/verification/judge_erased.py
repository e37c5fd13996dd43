"""Judge findings whose keys were erased on purpose since: they need no repair."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from makewhole.compensation.execution.look_again.topic_tail import TombstonesSince, ranges_read
from makewhole.compensation.planning.to_repair import is_to_repair
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.verified_results import ERASED, WHOLE
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.model.points import TablePoint, can_look_up
from makewhole.model.positions import SeenLog
from makewhole.model.verdict import Verdict
from makewhole.tables.erased import erased_everywhere, erased_in_table
from makewhole.window.context import WindowContext


class ErasedJudge:
    """Judges findings batch by batch. The tombstones are read once, for the keys of all `findings`."""

    def __init__(
        self, context: WindowContext, findings: Iterable[Sequence[JudgedFinding]], since: StartOffsets
    ) -> None:
        """Tombstones are looked for from the offsets of `since` on."""
        self._context = context
        tombstones = TombstonesSince(context=context, seen=lambda topic: _seen(context, topic, since))
        self._by_tombstones = {
            store.name: tombstones.erased(store, self._keys_of(store, findings)).erased_at
            for store in context.pipeline.points.values()
            if can_look_up(store) and store.erased is not None and store.erased.topics
        }

    def _keys_of(self, store: TablePoint, findings: Iterable[Sequence[JudgedFinding]]) -> Iterator[str]:
        """Yield the keys that may be erased from a store, of the findings that are to be repaired."""
        pipeline = self._context.pipeline
        hops = {hop.name for hop in pipeline.hops if store in pipeline.stores_at(hop.target)}
        for item in (item for batch in findings for item in batch if item.finding.hop in hops):
            if _may_be_erased(item) and is_to_repair(pipeline, item.finding):
                yield item.finding.key

    def with_erased(self, judged: Sequence[JudgedFinding]) -> list[JudgedFinding]:
        """Return the findings, in order; a missing key that every store behind its hop names as erased is whole."""
        asked: dict[str, set[str]] = {}
        for item in judged:
            if _may_be_erased(item):
                asked.setdefault(item.finding.hop, set()).add(item.finding.key)
        erased_at = {hop: self._erased_at(hop, keys) for hop, keys in asked.items()}
        return [
            replace(item, outcome=ERASED, reason=erased_at[item.finding.hop][item.finding.key])
            if _may_be_erased(item) and item.finding.key in erased_at[item.finding.hop]
            else item
            for item in judged
        ]

    def _erased_at(self, hop: str, keys: set[str]) -> dict[str, str]:
        pipeline = self._context.pipeline
        return erased_everywhere(pipeline.stores_at(pipeline.hop(hop).target), self._ask, keys)

    def _ask(self, store: TablePoint, keys: Iterable[str]) -> Mapping[str, str]:
        if store.name in self._by_tombstones:
            return self._by_tombstones[store.name]
        return erased_in_table(self._context.tables(store), store, keys)


def _may_be_erased(item: JudgedFinding) -> bool:
    is_absent = item.finding.verdict in (Verdict.MISSING, Verdict.VANISHED)
    return is_absent and item.outcome not in WHOLE


def _seen(context: WindowContext, topic: str, since: StartOffsets) -> SeenLog:
    offsets = since.offsets.get(topic)
    return ranges_read(context.window, topic) if offsets is None else SeenLog(topic_id=None, offsets=offsets)
