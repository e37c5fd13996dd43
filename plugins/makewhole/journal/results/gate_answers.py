"""Read and write the gate's reports on a window."""

from psycopg2.extras import Json

from makewhole.journal.statements import scope, statements_of
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_run = statements_of("gate_report")


def put_gate_report(journal: PgConnection, window: Window, stage: str, report: GateReport) -> None:
    """Write the gate's report on a stage; the newest one counts."""
    _run(
        journal,
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
        for stage, answer, planned, evaluated, failures, document in _run(journal, "gate_reports", **scope(window))
    }
