"""Build the findings and the pipeline that plans are drafted from: a ledger, a topic and a store."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from makewhole.compensation.planning.draft import draft_plan
from makewhole.model.actions import Action
from makewhole.model.hops import Hop, Remedies, Remedy, Reverse
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict

COPY = {"partition": 1, "offset": 17}


def pipeline_of(**changed: Remedy) -> Pipeline:
    """Return the pipeline, whose hops have these remedies by verdict."""

    def remedies(missing: Remedy) -> Remedies:
        chosen = {"missing": missing, "duplicate": Remedy.QUARANTINE, "mismatched": Remedy.UPSERT, **changed}
        return Remedies(**chosen)

    return Pipeline(
        name="p",
        points={
            "ledger": TablePoint(
                name="ledger", kind=PointKind.LEDGER, connection="pg", table="ops.outbox", key=("id",)
            ),
            "topic": TopicPoint(name="topic", connection="kafka", topic="flights", key=("$.id",)),
            "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="dw.flights", key=("id",)),
        },
        hops=(
            Hop(source="ledger", target="topic", remedies=remedies(Remedy.PRODUCE)),
            Hop(source="topic", target="store", remedies=remedies(Remedy.REDELIVER)),
        ),
    )


def with_lake(pipeline: Pipeline, **changed: Any) -> Pipeline:
    """Return a pipeline with a second table that is filled from its topic, by a hop with these changes, which only
    reports."""
    lake = TablePoint(name="lake", kind=PointKind.STORE, connection="pg", table="dw.lake", key=("id",))
    reported = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    hop = replace(Hop(source="topic", target="lake", remedies=reported, consumer_group="lake-loader"), **changed)
    return replace(pipeline, points={**pipeline.points, "lake": lake}, hops=(*pipeline.hops, hop))


def reversing_pipeline(value: Mapping[str, Any] | None = None, **changed: Remedy) -> Pipeline:
    """Return the pipeline with a template of reversals on each hop."""
    pipeline = pipeline_of(**changed)
    back = TopicPoint(name="back", connection="kafka", topic="reversals", key=("$.id",))
    reverse = Reverse(to="back", value=value or {"id": "{{ key }}"})
    hops = tuple(replace(hop, reverse=reverse) for hop in pipeline.hops)
    return replace(pipeline, points={**pipeline.points, "back": back}, hops=hops)


def finding_of(key: str, verdict: Verdict, hop: str, source: list[dict[str, Any]] | None = None) -> Finding:
    """Return a finding; `source` are the copies that its evidence names, by default one."""
    return Finding(
        hop=hop,
        key=key,
        key_hash=key.rjust(32, "0"),
        verdict=verdict,
        cause=Cause.NOT_IN_SOURCE,
        evidence={
            "source": [COPY] if source is None else source,
            "source_copies": 1 if source is None else len(source),
        },
    )


def with_evidence(finding: Finding, **evidence: Any) -> Finding:
    """Return a finding with more evidence."""
    return replace(finding, evidence={**finding.evidence, **evidence})


def plan_actions(pipeline: Pipeline, findings: Sequence[Finding]) -> list[Action]:
    """Return the actions for findings, ordered by hop, remedy and key, numbered from 0; limits are not applied."""
    return [draft.action for draft in draft_plan(pipeline, findings, window_keys=1).drafts]
