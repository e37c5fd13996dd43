"""Tell what a pipeline does about a verdict on a hop."""

from makewhole.model.pipeline import Pipeline, Remedies, Remedy
from makewhole.model.verdict import REPAIRABLE, Verdict


def remedy_of(remedies: Remedies, verdict: Verdict) -> Remedy:
    """Return what is done about a verdict; there is one for every gap, and for what has vanished."""
    return {
        Verdict.MISSING: remedies.missing,
        Verdict.DUPLICATE: remedies.duplicate,
        Verdict.MISMATCHED: remedies.mismatched,
        Verdict.UNEXPECTED: remedies.unexpected,
        Verdict.CONFLICT: Remedy.REPORT,
        Verdict.VANISHED: remedies.vanished,
    }[verdict]


def answered_kinds(pipeline: Pipeline) -> frozenset[tuple[str, Verdict]]:
    """Return the hops with the verdicts of which a plan needs every finding: those that it answers, and what is missing
    on any hop if it redelivers, because a redelivered record reaches other hops, too."""
    remedies = {(hop.name, one): remedy_of(hop.remedies, one) for hop in pipeline.hops for one in REPAIRABLE}
    is_redelivering = Remedy.REDELIVER in remedies.values()
    return frozenset(
        (hop, verdict)
        for (hop, verdict), remedy in remedies.items()
        if remedy is not Remedy.REPORT or (is_redelivering and verdict is Verdict.MISSING)
    )
