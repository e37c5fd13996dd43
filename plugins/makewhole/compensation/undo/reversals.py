"""Make the reversals of the records that a plan wrote: for each an event that takes its effect in a store back.

Records cannot be taken out of a log. The hop that feeds the store has the template of the events, and they are made
only when the person who undoes the plan requests them.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.freezing.fetch_reversals import ReversalFetcher
from makewhole.compensation.planning.action_draft import ActionDraft
from makewhole.compensation.sources.sources import Position, Sources
from makewhole.lake.local_files import BatchFile
from makewhole.model.actions import Action, BeforeReverse
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.reversal import PastReversals
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window

FindReversals = Callable[[set[str]], PastReversals]
"""Find the copies of some keys (by their hashes) that were taken back before."""


def reversing_hops(pipeline: Pipeline, topic: str) -> list[Hop]:
    """Return the hops that carry what is written to a topic point into a table, and have a template."""
    return [
        hop
        for hop in pipeline.hops
        if topic in (hop.source, hop.redeliver_to)
        and hop.reverse is not None
        and can_look_up(pipeline.points[hop.target])
    ]


def reverse_records(
    window: Window,
    sources: Sources,
    past: FindReversals,
    written: Iterable[Sequence[Action]],
    refused: Counter[Refusal],
) -> Iterator[PlannedPayload]:
    """Yield the reversals of records that receipts prove (`written`: the last one first, so many at a time).

    Each is made from the one row that the store has of the key now. `refused` counts the records without one, by
    why there is none.
    """
    with BatchFile[ActionDraft]() as batches:
        origins: dict[str, array[int]] = {}
        for actions in written:
            drafts = [draft for action in actions for draft in _draft_reversals(sources.pipeline, action)]
            batches.add(drafts)
            _add_origins(sources.pipeline, drafts, origins)
        sources.load({name: np.array(numbers, dtype=np.int64).reshape(-1, 2) for name, numbers in origins.items()})
        for drafts in batches:
            fetcher = ReversalFetcher(window, sources, past({draft.action.key_hash for draft in drafts}))
            for draft in drafts:
                made = _reversal(fetcher, draft, refused)
                if made is not None:
                    yield made


def _reversal(fetcher: ReversalFetcher, draft: ActionDraft, refused: Counter[Refusal]) -> PlannedPayload | None:
    try:
        reversal = fetcher.fetch(draft)
    except RefusedError as error:
        refused[error.refusal] += 1
        return None
    if reversal is None:
        refused[Refusal(RefusalCode.OTHER, "it was taken back before")] += 1
        return None
    fetched, payload = reversal
    return fetched.action, payload


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
        reversing = replace(action, hop=hop.name, target=target.name, before=BeforeReverse(place=target.place))
        yield ActionDraft(action=reversing, finding=finding, origin=_source_position(action))


def _source_position(action: Action) -> Position | None:
    """Return the (partition, offset) of the original of a redelivered record; None: it is from a ledger."""
    parts = (action.before.origin or "").rsplit("/", 2)
    return (int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def _add_origins(pipeline: Pipeline, drafts: Sequence[ActionDraft], origins: dict[str, "array[int]"]) -> None:
    """Add the positions of the originals by topic point: partition and offset of each, one after the other."""
    sources = {hop.name: hop.source for hop in pipeline.hops}
    for draft in drafts:
        if draft.origin is not None:
            origins.setdefault(sources[draft.action.hop], array("q")).extend(draft.origin)
