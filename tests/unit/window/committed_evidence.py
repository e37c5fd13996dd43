"""Fake what the steps of a window committed, at the functions that read it from the journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from makewhole.journal import acceptances, certificates, incidents, plans, step_failures, windows
from makewhole.journal.findings import window_findings
from makewhole.journal.results import gate_answers, hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import RECONCILED, HopResult
from makewhole.journal.step_failures import StepFailure
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection
from makewhole.window.certifying.certify import decide
from makewhole.window.configuration import judging_sha256

REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PIPELINE = Pipeline(
    name="demo",
    points={},
    hops=(Hop(source="a", target="b", remedies=REMEDIES), Hop(source="b", target="c", remedies=REMEDIES)),
)
MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
WINDOW = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
WHOLE = HopCounts(source_keys=5, matched=5)
GAPPY = HopCounts(source_keys=5, matched=4, missing=1)


@dataclass
class CommittedEvidence:
    """The evidence that the steps committed."""

    results: dict[str, dict[str, HopCounts]] = field(default_factory=dict)
    gates: dict[str, GateReport] = field(default_factory=dict)
    plan: Any = None
    is_plan_only: bool = False
    incidents: list[Incident] = field(default_factory=list)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    later_gaps: int | None = None
    undone_by: str | None = None
    accepted: dict[str, dict[str, int]] = field(default_factory=dict)
    refused_as_unread: int = 0
    broken: list[StepFailure] = field(default_factory=list)

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Answer with it in place of the functions of the journal."""

        def results(journal: PgConnection, window: Window, stage: str = RECONCILED) -> Mapping[str, HopResult]:
            of_stage = self.results.get(stage, {})
            return {hop: HopResult(hop=hop, counts=counts, digest="0") for hop, counts in of_stage.items()}

        monkeypatch.setattr(hop_results, "results", results)
        monkeypatch.setattr(step_failures, "of", lambda *_: self.broken)
        monkeypatch.setattr(gate_answers, "gate_reports", lambda *_: self.gates)
        monkeypatch.setattr(incidents, "of", lambda *_: self.incidents)
        monkeypatch.setattr(plans, "plan_of_window", lambda *_: self.plan)
        monkeypatch.setattr(windows, "is_plan_only", lambda *_: self.is_plan_only)
        monkeypatch.setattr(windows, "configuration", lambda *_: {"judging_sha256": judging_sha256(PIPELINE)})
        monkeypatch.setattr(snapshot_manifests, "snapshots", lambda *_: self.manifests)
        monkeypatch.setattr(certificates, "gaps_after", lambda *_: self.later_gaps)
        monkeypatch.setattr(plans, "undone_since", lambda *_: self.undone_by)
        monkeypatch.setattr(acceptances, "count_accepted", lambda *_: self.accepted)
        monkeypatch.setattr(window_findings, "count_refused_by", lambda *_: self.refused_as_unread)


def gate(answer: GateAnswer, *failures: str) -> GateReport:
    """Return what the gate answered, and why not."""
    return GateReport(answer=answer, planned=3, evaluated=3, failures=failures)


def decided(pipeline: Pipeline = PIPELINE) -> tuple[WindowState, str | None]:
    """Return the state that the window gets, and the reason."""
    return decide(cast(PgConnection, None), pipeline, WINDOW)
