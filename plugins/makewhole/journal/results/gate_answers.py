"""Read and write the gate's reports on a window."""

from psycopg2.extras import Json

from makewhole.journal.results.statements import run, scope
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.window import Window
from makewhole.sql import PgConnection


def put_gate_report(journal: PgConnection, window: Window, stage: str, report: GateReport) -> None:
    """Write the gate's report on a stage; the newest one counts."""
    run(
        journal,
        "gate_report",
        "put_gate_report",
        **scope(window),
        stage=stage,
        answer=report.answer.value,
        planned=report.planned,
        evaluated=report.evaluated,
        failures=Json(list(report.failures)),
        document=Json(dict(report.document)),
    )


def gate_reports(journal: PgConnection, window: Window) -> dict[str, GateReport]:
    """Return the gate's reports by stage."""
    return {
        stage: GateReport(
            answer=GateAnswer(answer),
            planned=planned,
            evaluated=evaluated,
            failures=tuple(failures),
            document=document,
        )
        for stage, answer, planned, evaluated, failures, document in run(
            journal, "gate_report", "gate_reports", **scope(window)
        )
    }
