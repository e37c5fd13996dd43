"""Make the reversals of the records that a plan wrote: for each an event that takes its effect in a store back.

Records cannot be taken out of a log. The hop that feeds the store has the template of the events, and they are made
only when the person who undoes the plan requests them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.freezing.fetch_reversals import ReversalFetcher
from makewhole.compensation.freezing.sources import Position, Sources
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Hop, Pipeline, Remedy, TablePoint
from makewhole.model.plan import Action
from makewhole.model.reversal import PastReversals
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window


@dataclass(frozen=True, kw_only=True)
class Reversals:
    """The reversals to send, and the number of records without one, by the reason."""

    items: tuple[PlannedPayload, ...]
    refused: Mapping[str, int]


def reversing_hops(pipeline: Pipeline, topic: str) -> list[Hop]:
    """Return the hops that carry what is written to a topic point into a table, and have a template."""
    return [
        hop
        for hop in pipeline.hops
        if topic in (hop.source, hop.redeliver_to)
        and hop.reverse is not None
        and isinstance(pipeline.points[hop.target], TablePoint)
    ]


def reverse_records(window: Window, sources: Sources, past: PastReversals, written: Sequence[Action]) -> Reversals:
    """Make the reversals of records that receipts prove, the last one first.

    Each is made from the one row that the store has of the key now. `past`: copies that were taken back before.
    """
    drafts = [draft for action in reversed(written) for draft in _draft_reversals(sources.pipeline, action)]
    sources.load(_origins(sources.pipeline, drafts))
    fetcher = ReversalFetcher(window, sources, past)
    items: list[PlannedPayload] = []
    refused: Counter[str] = Counter()
    for draft in drafts:
        try:
            reversal = fetcher.fetch(draft)
        except RefusedError as error:
            refused[str(error)] += 1
        else:
            if reversal is None:
                refused["it was taken back before"] += 1
                continue
            before = {**draft.action.before, **reversal.before}
            items.append((replace(draft.action, before=before), reversal.payload))
    return Reversals(items=tuple(items), refused=dict(refused))


def _draft_reversals(pipeline: Pipeline, action: Action) -> Iterator[ActionDraft]:
    for hop in reversing_hops(pipeline, action.target):
        assert hop.reverse is not None
        target = pipeline.points[hop.reverse.to]
        finding = Finding(
            hop=hop.name,
            key=action.key,
            key_hash=action.key_hash,
            verdict=Verdict.UNEXPECTED,  # every row of the key is extra
            cause=Cause.NOT_IN_SOURCE,
            evidence={"target_copies": 1},
        )
        reversing = replace(
            action, remedy=Remedy.REVERSE, hop=hop.name, target=target.name, before={"place": target.place}
        )
        yield ActionDraft(action=reversing, finding=finding, origin=_source_position(action))


def _source_position(action: Action) -> Position | None:
    """Return the (partition, offset) of the original of a redelivered record; None: it is from a ledger."""
    parts = str(action.before.get("origin", "")).rsplit("/", 2)
    return (int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def _origins(pipeline: Pipeline, drafts: Sequence[ActionDraft]) -> dict[str, list[Position]]:
    sources = {hop.name: hop.source for hop in pipeline.hops}
    wanted: dict[str, list[Position]] = {}
    for draft in drafts:
        if draft.origin is not None:
            wanted.setdefault(sources[draft.action.hop], []).append(draft.origin)
    return wanted
