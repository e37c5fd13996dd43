"""Test when a Spark step counts as committed, so that its task submits nothing, and what that task then says."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers, hop_results
from makewhole.model.errors import TransientError
from makewhole.model.gate import Gate, GateAnswer, GateReport
from makewhole.window.context import WindowContext
from makewhole.window.spark_steps.committed import committed_answer, committed_results, committed_snapshots
from makewhole_spark.carrier import Result, Task
from makewhole_spark.step_names import RECONCILE, SNAPSHOT, VALIDATE
from makewhole_spark.validate import keep_answer
from makewhole_spark.window_steps import Job, run_step
from tests.world.in_process import InProcessCarrier
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def run(shop: ReconciledShop, context: WindowContext, step: str, *, is_own: bool = True) -> str:
    """Run a step as the application of the run `first` does; return what it says."""
    with connect(shop.journal) as journal:
        job = Job(carrier=shop.carrier, journal=journal, context=context, asked_by="first", is_own=is_own)
        return run_step(step, job)


def committed(shop: ReconciledShop, context: WindowContext, asked_by: str = "first") -> list[str | None]:
    """Return what the task of each step would say without submitting anything."""
    with connect(shop.journal) as journal:
        return [
            committed_snapshots(journal, context),
            committed_results(journal, context),
            committed_answer(journal, context, asked_by),
        ]


def test_a_task_says_of_a_committed_step_what_its_job_said(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)), unloaded=orders([4]))
    context = shop.open()
    assert committed(shop, context) == [None, None, None]

    snapshots = run(shop, context, SNAPSHOT)
    assert snapshots == "snapshots taken: outbox, orders, warehouse"
    assert committed(shop, context) == [snapshots, None, None]

    judged = run(shop, context, RECONCILE)
    assert judged == "outbox→orders: 5 of 5 matched, 0 pending; orders→warehouse: 4 of 5 matched, 0 pending"
    assert committed(shop, context) == [snapshots, judged, None]

    answer = run(shop, context, VALIDATE)
    assert answer.splitlines()[0] == "the gate says FAIL"
    assert len(answer.splitlines()) > 1
    assert committed(shop, context) == [snapshots, judged, answer]


@dataclass(frozen=True, kw_only=True)
class OvertakenCarrier(InProcessCarrier):
    """Carries tasks once another process has done the whole of them, and its step with them: `overtakes` is what that
    does, once."""

    overtakes: list[Callable[[], object]]

    def carry(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
        """Have the other process come first, and do the same behind it."""
        while self.overtakes:
            self.overtakes.pop()()
        return super().carry(tasks, run)


def test_results_that_another_process_has_committed_meanwhile_stand(
    shop: ReconciledShop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.trade(orders(range(5)), unloaded=orders([4]))
    context = shop.open()
    run(shop, context, SNAPSHOT)
    overtaken = replace(shop, carrier=OvertakenCarrier(overtakes=[lambda: run(shop, context, RECONCILE)]))
    results = "select hop, counts::text, files::text from makewhole.hop_result order by hop"

    with caplog.at_level(logging.WARNING):
        said = run(overtaken, context, RECONCILE)

    hops = ["orders→warehouse: 4 of 5 matched, 0 pending", "outbox→orders: 5 of 5 matched, 0 pending"]
    assert sorted(said.split("; ")) == hops
    assert [record.getMessage() for record in caplog.records if "meanwhile" in record.getMessage()] == [
        f"{context.window.label}: another process has compared this revision meanwhile; its results stand"
    ]
    assert len(shop.journal_sql("select key from makewhole.finding")) == 1
    first = shop.journal_sql(results)
    assert sorted(run(shop, context, RECONCILE).split("; ")) == hops
    assert shop.journal_sql(results) == first


def test_a_step_that_lacks_a_point_or_a_hop_is_not_committed(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context = shop.judge_and_ask_the_gate()
    shop.journal_sql("delete from makewhole.slice_count where point = 'warehouse'")
    shop.journal_sql("delete from makewhole.snapshot where point = 'warehouse'")
    shop.journal_sql("delete from makewhole.hop_result where hop = 'outbox→orders'")
    assert committed(shop, context) == [None, None, None]


def test_the_gates_answer_counts_for_the_run_and_the_file_that_asked(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context = shop.judged()
    run(shop, context, VALIDATE)
    written = replace(context.pipeline.as_written or context.pipeline, gate=Gate(missing=3))
    stricter = replace(context, pipeline=replace(context.pipeline, gate=written.gate, as_written=written))

    assert committed(shop, context)[2] == "the gate says PASS"
    assert committed(shop, context, "second")[2] is None
    assert committed(shop, stricter)[2] is None
    with connect(shop.journal) as journal:
        broken = GateReport(answer=GateAnswer.ERROR, planned=0, evaluated=0, failures=("it broke",))
        keep_answer(journal, context, broken, "first")
    assert committed(shop, context)[2] is None


def test_an_answer_without_a_run_counts_for_no_run(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context = shop.judge_and_ask_the_gate()
    assert committed(shop, context)[2] is None
    assert committed(shop, context, "")[2] is None


def test_an_error_of_the_gate_in_the_application_of_another_step_is_not_kept(shop: ReconciledShop) -> None:

    shop.trade(orders(range(5)))
    context = shop.judged()
    shop.journal_sql("update makewhole.hop_result set files = files - 'summary'")

    with pytest.raises(TransientError, match="the gate says ERROR"):
        run(shop, context, VALIDATE, is_own=False)
    with connect(shop.journal) as journal:
        assert gate_answers.gate_reports(journal, context.window) == {}

    assert run(shop, context, VALIDATE).startswith("the gate says ERROR")
    with connect(shop.journal) as journal:
        kept = gate_answers.gate_reports(journal, context.window)[hop_results.RECONCILED]
    assert (kept.answer, kept.document["asked_by"]) == (GateAnswer.ERROR, "first")
