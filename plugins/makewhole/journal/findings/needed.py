"""Decide which findings the journal must have before a plan is made: it is of all of them or of nothing."""

from itertools import product

from makewhole.model.hops import FOR_ROWS, Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import DISPUTING, REPAIRABLE, Verdict

_CARRYING = FOR_ROWS | {Remedy.REDELIVER}
_BRINGING = {Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT}
_VERDICTS_OF_READERS = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.CONFLICT)


def kinds_needed(pipeline: Pipeline) -> frozenset[tuple[str, Verdict]]:
    """Return the hops with the verdicts of which a plan needs every finding: those that it answers. Where it sends
    records, these reach other hops, too, and it has to be known of every hop which keys it lacks, has several times or
    has in contradiction, and of topics that are filled from topics which they have alone. Where rows come to tables,
    it has to be known of the other hops into these what has vanished. Where it takes rows back that are unexpected, it
    has to be known which of their keys are missing further up; where it carries on what a topic has, what hops into
    topics say is wrong there, or not known."""
    answers = {(hop.name, verdict): hop.remedies.answer_to(verdict) for hop in pipeline.hops for verdict in REPAIRABLE}
    needed = {kind for kind, remedy in answers.items() if remedy is not Remedy.REPORT}
    if not {Remedy.PRODUCE, Remedy.REDELIVER}.isdisjoint(answers.values()):
        needed |= {(hop.name, verdict) for hop in pipeline.hops for verdict in _VERDICTS_OF_READERS}
        needed |= {(name, Verdict.UNEXPECTED) for name in _between_topics(pipeline)}
    needed |= {(other, Verdict.VANISHED) for hop in pipeline.hops for other in _hops_beside(pipeline, hop)}
    if any(verdict is Verdict.UNEXPECTED for _, verdict in needed):
        needed |= {(hop.name, Verdict.MISSING) for hop in pipeline.hops}
    if not _CARRYING.isdisjoint(answers.values()):
        needed |= {
            (hop.name, verdict)
            for hop, verdict in product(pipeline.hops, DISPUTING)
            if has_log(pipeline.points[hop.target])
        }
    return frozenset(needed)


def _between_topics(pipeline: Pipeline) -> list[str]:
    points = pipeline.points
    return [hop.name for hop in pipeline.hops if has_log(points[hop.source]) and has_log(points[hop.target])]


def _hops_beside(pipeline: Pipeline, hop: Hop) -> set[str]:
    """Return the other hops into the tables that remedies of a hop bring rows to. One that starts from the topic which
    lacks a produced record says of no key that it has vanished behind it."""
    beside: set[str] = set()
    for remedy in hop.remedies.chosen & _BRINGING:
        places = pipeline.places_written(hop, remedy)
        behind = pipeline.hops_behind(hop.target) if remedy is Remedy.PRODUCE else ()
        into = (other for other in pipeline.hops if pipeline.place_of(other.target) in places)
        beside |= {other.name for other in into if other != hop and other not in behind}
    return beside
