"""Find in the journal whether a Spark step of a window revision has committed, and report what it found."""

from collections.abc import Mapping
from typing import Any, Protocol

from makewhole.journal.results import gate_answers, hop_results, snapshot_manifests
from makewhole.model.gate import GateAnswer
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.configuration import judging_sha256
from makewhole.window.spark_steps import accounts

ASKED_BY = "asked_by"
"""The field of a gate report's document that names the run whose application asked the gate."""


class JudgedWindow(Protocol):
    """A window with its pipeline, whose keys are read by the window's layout: all that the journal is asked for."""

    @property
    def pipeline(self) -> Pipeline: ...

    @property
    def window(self) -> Window: ...


def committed_snapshots(journal: PgConnection, context: JudgedWindow) -> str | None:
    """Report which snapshots there are, in the order of the points; None when one is missing."""
    manifests = snapshot_manifests.snapshots(journal, context.window)
    points = [point.name for point in context.pipeline.ordered_points()]
    if not set(points) <= set(manifests):
        return None
    return accounts.snapshots_taken(journal, context.window, points)


def committed_results(journal: PgConnection, context: JudgedWindow) -> str | None:
    """Report the counts of each hop and topic alone, in the order of the file; None when those of the file have no
    results."""
    results = hop_results.results(journal, context.window)
    names = context.pipeline.judged_names
    if set(results) != set(names):
        return None
    return accounts.hops_judged(journal, context.window, {name: results[name] for name in names})


def committed_answer(journal: PgConnection, context: JudgedWindow, asked_by: str) -> str | None:
    """Report what the gate answered the application of this run; None when it has to be asked.

    An answer counts when the gate could give one, and was asked for this run by the file as it is now: the limits of a
    file that was changed since may be others.
    """
    report = gate_answers.gate_reports(journal, context.window).get(hop_results.RECONCILED)
    if report is None or report.answer is GateAnswer.ERROR:
        return None
    if _asked(report.document) != (asked_by, judging_sha256(context.pipeline)):
        return None
    return accounts.gate_answered(report)


def _asked(document: Mapping[str, Any]) -> tuple[Any, Any]:
    return document.get(ASKED_BY), document.get("judging_sha256")
