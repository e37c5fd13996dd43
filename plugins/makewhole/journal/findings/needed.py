"""Tell which findings the journal must have before a plan is made: it is of all of them or of nothing."""

from makewhole.model.pipeline import Pipeline, Remedy
from makewhole.model.verdict import REPAIRABLE, Verdict


def kinds_needed(pipeline: Pipeline) -> frozenset[tuple[str, Verdict]]:
    """Return the hops with the verdicts of which a plan needs every finding: those that it answers. Where it sends
    records, these reach other hops, too, and it has to be known of every hop which keys it lacks, has several times or
    has in contradiction."""
    answers = {(hop.name, one): hop.remedies.answer_to(one) for hop in pipeline.hops for one in REPAIRABLE}
    sends = not {Remedy.PRODUCE, Remedy.REDELIVER}.isdisjoint(answers.values())
    reached = (Verdict.MISSING, Verdict.DUPLICATE, Verdict.CONFLICT) if sends else ()
    return frozenset(
        (hop, verdict)
        for (hop, verdict), remedy in answers.items()
        if remedy is not Remedy.REPORT or verdict in reached
    )
