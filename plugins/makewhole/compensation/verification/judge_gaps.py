"""Judge the gaps of a window anew by reading their keys again from the real systems.

A finding is *repaired* when every store downstream holds its key once, with the source's value, and the topic holds a
committed copy. A duplicate in a topic cannot be taken out of a log: it is *contained* when every store downstream
holds the key once all the same. Where copies are taken back by an event, the finding is *reversed* when there is a
committed reversal for each of them. Whatever cannot be proven stays *open*. Consumers need time to load what was
redelivered, so the stores are read again until the deadline.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from makewhole.compensation.planning.draft import is_reversed
from makewhole.compensation.verification.committed_since import CopiesByKey, StartOffsets, by_key, copies_since
from makewhole.compensation.verification.judge_reversals import ReversalJudge
from makewhole.compute.frames import KEYS, empty
from makewhole.compute.normalise import table_frame
from makewhole.journal.window_results import JudgedFinding
from makewhole.model.pipeline import Hop, Remedy, TablePoint, TopicPoint
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import Finding, Verdict
from makewhole.postgres.read.export import read_keys
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
_PAUSE_SECONDS = 1.0


def judge_gaps_anew(
    context: WindowContext,
    findings: Sequence[JudgedFinding],
    since: StartOffsets,
    deadline_seconds: float,
    progress: Callable[[int, int], None] | None = None,
    past: PastReversals = NOTHING_REVERSED,
) -> list[JudgedFinding]:
    """Judge every gap anew; other findings are returned as they are. `past`: the reversals in the journal.

    `progress` is called with (settled, all) after each read. Raises TransientError when a system does not answer.
    """
    gaps = [item for item in findings if item.finding.verdict.is_gap]
    deadline = time.monotonic() + deadline_seconds
    reversals = ReversalJudge(context, past, since)
    taken_back = [reversals.judge(item) for item in gaps if is_reversed(context.pipeline, item.finding)]
    gaps = [item for item in gaps if not is_reversed(context.pipeline, item.finding)]
    written = _written_since(context, gaps, since)
    while True:
        stores = _read_stores(context, gaps)
        judged = [*(_judge(context, item, written, stores) for item in gaps), *taken_back]
        settled = sum(item.outcome != "open" for item in judged)
        if progress is not None:
            progress(settled, len(judged))
        is_final = all(item.outcome != "open" or not may_still_arrive(context, item) for item in judged)
        if is_final or time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE_SECONDS)
    others = [item for item in findings if not item.finding.verdict.is_gap]
    return [*judged, *others]


def _judge(
    context: WindowContext, item: JudgedFinding, written: Mapping[str, CopiesByKey], stores: Mapping[str, CopiesByKey]
) -> JudgedFinding:
    finding = item.finding
    hop = next(hop for hop in context.pipeline.hops if hop.name == finding.hop)
    problem = _problem(context, hop, finding, written, stores)
    if problem is not None:
        outcome = "refused" if item.outcome == "refused" else "open"
        return replace(item, outcome=outcome, reason=item.reason if outcome == "refused" else problem)
    is_topic_duplicate = finding.verdict is Verdict.DUPLICATE and isinstance(
        context.pipeline.points[hop.target], TopicPoint
    )
    if is_topic_duplicate:
        return replace(item, outcome="contained", reason="every store downstream holds the key once")
    return replace(item, outcome="repaired", reason=None)


def _problem(
    context: WindowContext,
    hop: Hop,
    finding: Finding,
    written: Mapping[str, CopiesByKey],
    stores: Mapping[str, CopiesByKey],
) -> str | None:
    """Return why the key is not whole yet; None: it is."""
    target = context.pipeline.points[hop.target]
    if finding.verdict is Verdict.UNEXPECTED:
        copies = [] if isinstance(target, TopicPoint) else stores[target.name].get(finding.key, [])
        return f"{target.name} still holds it" if copies or isinstance(target, TopicPoint) else None
    if isinstance(target, TablePoint):
        return _store_problem(target.name, finding, stores)
    if finding.verdict is Verdict.MISSING and not written[target.name].get(finding.key):
        return f"no committed record of it came to {target.name}"
    if finding.verdict is Verdict.MISMATCHED:
        return f"a record of {target.name} cannot be changed"
    downstream = _stores_below(context, target.name)
    if finding.verdict is Verdict.DUPLICATE and not downstream:
        return f"{target.name} holds it more than once, and no store downstream could show that this did no harm"
    problems = [_store_problem(name, finding, stores) for name in downstream]
    return next((problem for problem in problems if problem is not None), None)


def _store_problem(store: str, finding: Finding, stores: Mapping[str, CopiesByKey]) -> str | None:
    copies = stores[store].get(finding.key, [])
    if finding.evidence.get("latest", {}).get("tombstone"):
        return f"{store} still holds it" if copies else None
    if len(copies) != 1:
        return f"{store} holds it {len(copies)} times" if copies else f"{store} does not hold it"
    values = finding.evidence.get("values", {})
    differing = sorted(name for name, text in values.items() if copies[0].get(f"c:{name}") != text)
    return f"{store} holds other values in {', '.join(differing)}" if differing else None


def _stores_below(context: WindowContext, point: str) -> list[str]:
    """Return the tables that are fed from a topic over unfiltered hops, directly or over further topics."""
    found = []
    for hop in context.pipeline.hops_from(point):
        if hop.where is not None:
            continue
        if isinstance(context.pipeline.points[hop.target], TablePoint):
            found.append(hop.target)
        else:
            found += _stores_below(context, hop.target)
    return found


def may_still_arrive(context: WindowContext, item: JudgedFinding) -> bool:
    """Tell whether a consumer may still load what is missing: nothing else changes by itself."""
    hop = next(hop for hop in context.pipeline.hops if hop.name == item.finding.hop)
    remedies = {Verdict.MISSING: hop.remedies.missing, Verdict.MISMATCHED: hop.remedies.mismatched}
    return remedies.get(item.finding.verdict) in (Remedy.REDELIVER, Remedy.PRODUCE)


def _read_stores(context: WindowContext, gaps: Iterable[JudgedFinding]) -> dict[str, CopiesByKey]:
    """Read every row of the touched keys in every table downstream of their hops."""
    wanted: dict[str, set[str]] = {}
    for item in gaps:
        hop = next(hop for hop in context.pipeline.hops if hop.name == item.finding.hop)
        target = context.pipeline.points[hop.target]
        tables = [target.name] if isinstance(target, TablePoint) else _stores_below(context, target.name)
        for name in tables:
            wanted.setdefault(name, set()).add(item.finding.key)
    return {name: _rows(context, name, sorted(keys)) for name, keys in wanted.items()}


def _rows(context: WindowContext, name: str, keys: Sequence[str]) -> CopiesByKey:
    point = context.pipeline.points[name]
    assert isinstance(point, TablePoint)
    frames = [
        table_frame(frame, dict(context.pipeline.compare))[0]
        for frame in read_keys(context.postgres(point), context.table_shape(point), keys)
    ]
    return by_key(pl.concat(frames) if frames else empty(KEYS))


def _written_since(
    context: WindowContext, gaps: Sequence[JudgedFinding], since: StartOffsets
) -> dict[str, CopiesByKey]:
    """Read the committed records of missing keys that were appended to their topics since compensation began."""
    wanted: dict[str, set[str]] = {}
    for item in gaps:
        hop = next(hop for hop in context.pipeline.hops if hop.name == item.finding.hop)
        if isinstance(context.pipeline.points[hop.target], TopicPoint):
            keys = wanted.setdefault(hop.target, set())
            if item.finding.verdict is Verdict.MISSING:
                keys.add(item.finding.key)
    return {name: copies_since(context, name, keys, since) for name, keys in wanted.items()}
