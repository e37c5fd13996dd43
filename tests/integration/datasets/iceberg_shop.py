"""Run a shop whose warehouse is an Iceberg table: its orders go from a topic into it, and no ledger is before them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import run_window_plan
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.preview.dry_report import Forecast
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.plan import Plan, PlanState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.iceberg_lake import Lake, row_of
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, dataset
from tests.world.windows import ReconciledShop

TABLE = "dw.warehouse"


@dataclass(kw_only=True)
class IcebergShop(ReconciledShop):
    """A shop whose warehouse is a table of a catalogue on a folder."""

    lake: Lake

    def describe_lake(self, *, compensation: Settings | None = None, table: str = TABLE, **settings: Any) -> None:
        """Write the pipeline's file; its warehouse is a table of the lake."""
        warehouse = settings.pop("warehouse", None) or dataset("lake", table)
        self.describe(
            has_ledger=False,
            compensation=compensation or {},
            is_observing=compensation is None,
            more_points={"warehouse": warehouse},
            **settings,
        )

    def load(self, orders: Iterable[Order]) -> None:
        """Append rows in one file, as a loader does."""
        self.lake.append(TABLE, [row_of(order) for order in orders])

    # The repair

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

    def refused(self, plan: Plan) -> dict[str, str]:
        """Return the refusals of a plan's actions, by key; all others were done."""
        outcomes = self.journal_sql(
            "select key, outcome, outcome_reason from makewhole.action where plan = %s", plan.id
        )
        assert {outcome for _, outcome, _ in outcomes} <= {"done", "refused"}
        return {key: reason for key, outcome, reason in outcomes if outcome == "refused"}

    def forecast_of(self, context: WindowContext, plan: Plan) -> dict[str, dict[Forecast, int]]:
        """Return what a dry run says of the actions of a plan, by remedy."""
        preview = dry_run(self.journal, plan.id, targets_of(context.pipeline, context.connections))
        return {part.remedy: {kind: count for kind, count in part.forecasts.items() if count} for part in preview.parts}
