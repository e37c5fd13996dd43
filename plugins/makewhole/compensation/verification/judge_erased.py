"""Judge findings whose keys were erased on purpose since: they need no repair."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from makewhole.compensation.execution.look_again.topic_tail import TombstonesSince, ranges_read
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.verified_results import ERASED, WHOLE
from makewhole.journal.window_results import JudgedFinding
from makewhole.model.pipeline import TablePoint
from makewhole.model.positions import SeenLog
from makewhole.model.verdict import Verdict
from makewhole.postgres.read.erased import erased_everywhere, told_by_table
from makewhole.window.context import WindowContext


def with_erased(context: WindowContext, judged: Sequence[JudgedFinding], since: StartOffsets) -> list[JudgedFinding]:
    """Return the findings, in order; a missing key that every store behind its hop names as erased is whole. Tombstones
    are looked for from the offsets of `since` on."""
    asked: dict[str, set[str]] = {}
    for item in judged:
        if _may_be_erased(item):
            asked.setdefault(item.finding.hop, set()).add(item.finding.key)
    told = {hop: _erased_at(context, hop, keys, since) for hop, keys in asked.items()}
    return [
        replace(item, outcome=ERASED, reason=told[item.finding.hop][item.finding.key])
        if _may_be_erased(item) and item.finding.key in told[item.finding.hop]
        else item
        for item in judged
    ]


def _may_be_erased(item: JudgedFinding) -> bool:
    is_absent = item.finding.verdict in (Verdict.MISSING, Verdict.VANISHED)
    return is_absent and item.outcome not in WHOLE


def _erased_at(context: WindowContext, hop_name: str, keys: set[str], since: StartOffsets) -> dict[str, str]:
    hop = context.pipeline.hop(hop_name)
    tombstones = TombstonesSince(context=context, seen=lambda topic: _seen(context, topic, since))

    def ask(store: TablePoint, asked: Iterable[str]) -> Mapping[str, str]:
        if store.erased is not None and store.erased.topics:
            return tombstones.erased(store, asked).told
        return told_by_table(context.postgres(store), store, asked)

    return erased_everywhere(context.pipeline.stores_at(hop.target), ask, keys)


def _seen(context: WindowContext, topic: str, since: StartOffsets) -> SeenLog:
    offsets = since.offsets.get(topic)
    return ranges_read(context.window, topic) if offsets is None else SeenLog(topic_id=None, offsets=offsets)
