"""Read and write the gate's reports on a window."""

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.gate import GateReport
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, statements_of

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
    return {row.stage: record(GateReport, row) for row in _run(journal, "gate_reports", **scope(window))}
