"""Make plans for a dry run to look at."""

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.preview.dry_report import DryRun, RecordToSend
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.undo.plan_undo import UndoRequest, freeze_undo
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan
from makewhole.model.verdict import Verdict
from makewhole.tables.row_change import RowChange
from tests.integration.compensation.world import PlanWorld

HOP = "flights→warehouse"


def mixed(world: PlanWorld, *, redeliver: bool = False) -> Plan:
    """Three rows to insert (or records to send), three to mend, three to move aside: K0 to K8."""
    if not redeliver:
        world.remedies(HOP, missing=Remedy.UPSERT)
    world.send(range(9))
    world.sql("insert into dw.departures (id, delay, note) select 'K' || n, 99.5, 'old' from generate_series(3, 5) n")
    world.sql(
        "insert into dw.departures (id, delay, note) select 'K' || n, n, 'copy ' || c "
        "from generate_series(6, 8) n, generate_series(0, 1) c"
    )
    verdicts = [Verdict.MISSING] * 3 + [Verdict.MISMATCHED] * 3 + [Verdict.DUPLICATE] * 3
    plan = world.plan([world.finding(number, verdict) for number, verdict in enumerate(verdicts)])
    assert isinstance(plan, Plan)
    return plan


def looked(world: PlanWorld, plan: Plan, samples: int = 3) -> DryRun:
    return dry_run(world.journal, plan.id, world.targets, samples=samples)


def row_change(shown: RowChange | RecordToSend) -> RowChange:
    """Return what is shown of a table."""
    assert isinstance(shown, RowChange)
    return shown


def undo_of(world: PlanWorld, plan: Plan) -> Plan:
    undo = freeze_undo(world.journal, UndoRequest(plan=plan.id, pipeline=world.pipeline), world.sources).plan
    assert isinstance(undo, Plan)
    return undo


def approve(world: PlanWorld, plan: Plan) -> None:
    record_answer(world.journal, plan.id, Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="anna"), Approval())
