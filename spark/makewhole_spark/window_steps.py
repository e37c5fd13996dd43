"""Run a Spark step of a window: what it commits, it commits at its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.model.errors import TransientError
from makewhole.model.gate import GateAnswer
from makewhole.publishing import published
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.spark_steps import accounts
from makewhole_spark.carrier import Carrier
from makewhole_spark.publish.publish_window import publish_windows
from makewhole_spark.reconcile.judge_window import reconcile
from makewhole_spark.snapshot.take import take_snapshots
from makewhole_spark.step_names import PUBLISH, RECONCILE, SNAPSHOT, VALIDATE
from makewhole_spark.validate import ask_gate, keep_answer


@dataclass(frozen=True, kw_only=True)
class Job:
    """A step of one revision of a window in a running application. `asked_by` is the run of Airflow that submitted it,
    "" by hand; `is_own` unless the application was submitted for an earlier step."""

    carrier: Carrier
    journal: PgConnection
    context: WindowContext
    asked_by: str = ""
    is_own: bool = True


def run_step(step: str, job: Job) -> str:
    """Run a step; return what it found."""
    return _RUNS[step](job)


def _snapshot(job: Job) -> str:
    points = take_snapshots(job.carrier, job.journal, job.context, job.carrier.parallelism)
    return accounts.snapshots_taken(job.journal, job.context.window, points)


def _reconcile(job: Job) -> str:
    return accounts.hops_judged(job.journal, job.context.window, reconcile(job.carrier, job.journal, job.context))


def _validate(job: Job) -> str:
    """Ask the gate. An ERROR that another step's application meets is not kept: the task `validate` asks again."""
    report = ask_gate(job.carrier, job.journal, job.context)
    answer = accounts.gate_answered(report)
    if report.answer is GateAnswer.ERROR and not job.is_own:
        raise TransientError(answer)
    keep_answer(job.journal, job.context, report, job.asked_by)
    return answer


def _publish(job: Job) -> str:
    publish_windows(job.carrier, job.journal, job.context)
    return published.published_text(job.journal, job.context.pipeline, job.context.window)


_RUNS: Mapping[str, Callable[[Job], str]] = {
    SNAPSHOT: _snapshot,
    RECONCILE: _reconcile,
    VALIDATE: _validate,
    PUBLISH: _publish,
}
