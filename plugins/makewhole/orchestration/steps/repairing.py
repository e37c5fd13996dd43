"""Plan the repair of the window of a run, carry it out, and judge what it touched again."""

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from makewhole.model.gate import GateAnswer
from makewhole.model.plan import Plan, PlanState
from makewhole.orchestration.steps.recorded_failure import recorded
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_context, require_whole_journal
from makewhole.orchestration.task_ids import APPROVE, CERTIFY, COMPENSATE, POLL_SECONDS, VERIFY

if TYPE_CHECKING:
    from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)


@step
@recorded
def plan() -> list[str]:
    """Freeze the plan when the gate failed; return the ids of the tasks to go on with. Where it passed, end the plans
    of earlier revisions alone: what they wrote is known then, and can be removed one day."""
    from makewhole.journal import plans, windows
    from makewhole.journal.database import connect
    from makewhole.journal.results import gate_answers, hop_results

    context = load_context()
    with connect() as journal:
        report = gate_answers.gate_reports(journal, context.window).get(hop_results.RECONCILED)
        plan_only = windows.is_plan_only(journal, context.window)
        earlier = plans.plans_before(journal, context.window.pipeline, context.window.number, context.window.revision)
    if report is None or report.answer is not GateAnswer.FAIL:
        logger.info("the gate says %s: nothing to plan", report.answer.value if report else "nothing")
        if earlier and report is not None and report.answer is GateAnswer.PASS:
            from makewhole.compensation.plan_window import end_plans_before

            end_plans_before(context)
        return [CERTIFY]
    for failure in report.failures:
        logger.info("gate: %s", failure)
    return _plan_repair(context, plan_only=plan_only)


def _plan_repair(context: "WindowContext", *, plan_only: bool) -> list[str]:
    from makewhole.compensation.approval.ask import approval_request
    from makewhole.compensation.plan_window import plan_window

    frozen = plan_window(context)
    for refused in frozen.refusals[:20]:
        logger.info("no action for a finding of %s: %s", refused.hop, refused.refusal)
    unanswered = log_unanswered(context)
    if frozen.plan is None:
        logger.info("no action can be taken; what is there will be judged as it is")
        return [CERTIFY] if plan_only else [VERIFY]
    logger.info(
        "plan %s: %s; state %s%s",
        frozen.plan.id,
        ", ".join(f"{count} {remedy}" for remedy, count in frozen.plan.counts.items()),
        frozen.plan.state.value,
        f" ({frozen.plan.reason})" if frozen.plan.reason else "",
    )
    request = approval_request(context, frozen.plan, reported=unanswered)
    get_current_context()["ti"].xcom_push(key="approval", value=request)
    return [CERTIFY] if plan_only else [_task_after(frozen.plan)]


def log_unanswered(context: "WindowContext") -> list[str]:
    """Log which open findings are only reported, and the lines that would have them repaired; return the sentences."""
    from makewhole.compensation.planning.unanswered import read_unanswered
    from makewhole.journal.database import connect

    with connect() as journal:
        unanswered = read_unanswered(journal, context.pipeline, context.window, context.connections)
    sentences = [sentence for group in unanswered for sentence in group.sentences()]
    for sentence in sentences:
        logger.info("%s", sentence)
    return sentences


def _task_after(plan: Plan) -> str:
    if plan.state is PlanState.AWAITING_APPROVAL:
        return APPROVE
    return VERIFY if plan.state in (PlanState.REFUSED, PlanState.REJECTED) else COMPENSATE


@step
@recorded
def compensate() -> int:
    """Run the plan; return the number of chunks that receipts prove. Of a self-check its loader then reads what was
    sent: that of any other pipeline runs all the time."""
    from makewhole.compensation.execution.run_plan import compensate_window
    from makewhole.self_check.load import load
    from makewhole.self_check.systems import systems_of

    context = load_context()
    require_whole_journal(context)
    receipts = compensate_window(context, lambda progress: logger.info("%s", progress))
    if context.pipeline.self_check is not None:
        logger.info("the self-check's loader read %d records", load(systems_of(context.pipeline, context.connections)))
    return len(receipts)


@step
@recorded
def verify() -> dict[str, Any]:
    """Read the touched keys again and judge them again."""
    from makewhole.compensation.verification.verify_window import verify_window

    def log_progress(done: int, total: int) -> None:
        logger.info("%d of %d gaps are whole or decided", done, total)

    verified = verify_window(load_context(), log_progress, stays_seconds=POLL_SECONDS)
    for failure in verified.gate.failures:
        logger.info("gate: %s", failure)
    return {"whole": verified.whole, "gaps": verified.gaps, "gate": verified.gate.answer.value}
