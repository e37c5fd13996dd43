"""Plan, approve and run the repair of a shop's windows, and take it back, step by step."""

from dataclasses import dataclass

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import run_window_plan
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.windows import ReconciledShop


@dataclass(kw_only=True)
class RepairedShop(ReconciledShop):
    """A shop, and the repair of its windows."""

    def planned(self, context: WindowContext) -> Plan:
        """Freeze the plan of a window; there is one, and it waits for an answer."""
        frozen = plan_window(context)
        assert frozen.plan is not None
        assert frozen.plan.state is PlanState.AWAITING_APPROVAL
        return frozen.plan

    def undo(self, context: WindowContext, plan: Plan) -> Plan:
        """Freeze the undo of a plan."""
        undo = plan_undo(context, plan.id, reverses=False)
        assert undo.plan is not None
        assert undo.remaining == ()
        return undo.plan

    def approve(self, plan: Plan) -> None:
        """Approve a plan, as a person does who has seen it."""
        answer = Answer(sha256=plan.sha256, decision=Decision.APPROVED, by="anna")
        record_answer(self.journal, plan.id, answer, self.pipeline.approval)

    def run(self, context: WindowContext, plan: Plan) -> None:
        """Run what is left of a plan, or of its undo."""
        run_window_plan(context, plan.id, lambda _: None)

    def close(self, context: WindowContext) -> ClosedWindow:
        """Judge the gaps of a window again, and close it."""
        verify_window(context, lambda *_: None, patience_seconds=0)
        return self.certify(context)

    def refused(self, plan: Plan) -> dict[str, Refusal]:
        """Return the refusals of a plan's actions, by key; all others were done."""
        outcomes = self.journal_sql(
            "select key, outcome, outcome_reason from makewhole.action where plan = %s", plan.id
        )
        assert {outcome for _, outcome, _ in outcomes} <= {"done", "refused"}
        return {key: Refusal.of_text(reason) for key, outcome, reason in outcomes if outcome == "refused"}
