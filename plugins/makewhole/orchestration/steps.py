"""Run the steps of a window as tasks of Airflow: load the run's window, do the step, log the result.

DAG files import this module, so what the steps need is imported when they run. Our transient errors are left to
Airflow's retries; permanent ones fail the task at once.
"""

import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import Asset, AssetAlias, get_current_context
from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.errors import NotYetError, PermanentError
from makewhole.model.gate import GateAnswer
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import WindowState
from makewhole.orchestration.reschedule import rescheduled
from makewhole.orchestration.task_ids import (
    APPROVE,
    CERTIFIED_ALIAS,
    CERTIFY,
    COMPENSATE,
    OPEN_WINDOW,
    POLL_SECONDS,
    RECONCILE,
    SNAPSHOT,
    VERIFY,
    certified_asset,
)

if TYPE_CHECKING:
    from makewhole.journal.certificates import ChainEntry
    from makewhole.model.window import Window
    from makewhole.window.certify import ClosedWindow
    from makewhole.window.context import WindowContext
    from makewhole.window.interval import Request
    from makewhole.window.open import OpenedWindow

logger = logging.getLogger(__name__)
StepFunction = TypeVar("StepFunction", bound=Callable[..., Any])


def step(function: StepFunction) -> StepFunction:
    """Wrap a step: an error of ours that is permanent fails the task without a retry, a wait gives its worker back."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except PermanentError as error:
            raise AirflowFailException(str(error)) from error
        except NotYetError as error:
            logger.info("%s; looking again in %.0f s", error, POLL_SECONDS)
            raise rescheduled() from error

    return run  # type: ignore[return-value]


def load_pipeline(name: str) -> Pipeline:
    """Read a pipeline and give this process its connections."""
    from makewhole.config.pipeline_file import find_pipeline
    from makewhole.orchestration.connections import export_connections

    pipeline = find_pipeline(name)
    export_connections(pipeline)
    return pipeline


def opened_window(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of the task `open_window` of this run: pipeline, window, revision, label, settled_at.

    Raises:
        AirflowFailException: it did not open a window.
    """
    found = context["ti"].xcom_pull(task_ids=OPEN_WINDOW)
    if not isinstance(found, dict):
        raise AirflowFailException("no window was opened in this run; see the task `open_window`")
    return found


def _load_context() -> "WindowContext":
    """Load the window of this run, with the connections of its pipeline."""
    from makewhole.window.context import window_context

    pipeline, window = _load_window(get_current_context())
    return window_context(window, pipeline)


def _load_window(context: Mapping[str, Any]) -> tuple[Pipeline, "Window"]:
    """Load the window of this run and its pipeline, whose connections this process has then."""
    from makewhole.journal import windows
    from makewhole.journal.database import connect

    opened = opened_window(context)
    pipeline = load_pipeline(opened["pipeline"])
    with connect() as journal:
        return pipeline, windows.load(journal, opened["pipeline"], opened["window"], opened["revision"])


@dataclass(frozen=True, kw_only=True)
class _WindowOfRun:
    """The window of a run: what a task that finds its step committed loads, in place of all that a step needs."""

    pipeline: Pipeline
    window: "Window"


def committed_step(task_id: str, context: Mapping[str, Any]) -> str | None:
    """Tell what a Spark step of this run has committed; None when it has to be run.

    The gate's answer counts for the first try of its task alone: a person who clears the task wants it asked again.
    """
    from makewhole.config.key_layout import with_layout
    from makewhole.journal.database import connect
    from makewhole.window.spark_steps import committed

    pipeline, found = _load_window(context)
    window = _WindowOfRun(pipeline=with_layout(pipeline, found.key_layout), window=found)
    with connect() as journal:
        if task_id == SNAPSHOT:
            return committed.committed_snapshots(journal, window)
        if task_id == RECONCILE:
            return committed.committed_results(journal, window)
        ti = context["ti"]
        return committed.committed_answer(journal, window, ti.run_id) if ti.try_number <= 1 else None


@step
def open_window(pipeline_name: str | None) -> dict[str, Any]:
    """Open the window of this run: its data interval when it was scheduled or backfilled, its form otherwise.

    `pipeline_name` None: the form names the pipeline.
    """
    from makewhole.journal.database import connect
    from makewhole.orchestration.connections import signing_key
    from makewhole.orchestration.older_windows import finish_older_windows
    from makewhole.window.context import connections_of
    from makewhole.window.open import open_interval

    context = get_current_context()
    pipeline = load_pipeline(pipeline_name or context["params"]["pipeline"])
    signing_key()  # a window that nobody could certify is not begun
    request = _window_request(context)
    finish_older_windows(context, pipeline, request)
    with connect() as journal:
        opened = open_interval(journal, pipeline, connections_of(pipeline), request)
    return log_opened(opened, "" if opened.is_new else "; it was judged before, this is a new revision")


@step
def continue_window() -> dict[str, Any]:
    """Take up the unfinished window that the form names."""
    from makewhole.journal.database import connect
    from makewhole.window.unfinished import continue_window

    form = get_current_context()["params"]
    pipeline = load_pipeline(form["pipeline"])
    with connect() as journal:
        opened = continue_window(journal, pipeline, int(form["window"]), int(form["revision"]))
    return log_opened(opened, "; it was left unfinished, what its steps committed is kept")


def log_opened(opened: "OpenedWindow", remark: str) -> dict[str, Any]:
    """Log what was opened; return what the later tasks of the run need."""
    from makewhole.model.incident_text import incident_sentence

    window = opened.window
    logger.info(
        "%s: %s to %s, %d offsets, settled at %s%s",
        window.label,
        window.start or "the beginning",
        window.end,
        sum(part.span for parts in window.ranges.values() for part in parts),
        opened.settled_at,
        remark,
    )
    for incident in opened.incidents:
        logger.warning("%s: %s", window.label, incident_sentence(incident))
    return {
        "pipeline": window.pipeline,
        "window": window.number,
        "revision": window.revision,
        "label": window.label,
        "settled_at": opened.settled_at.isoformat(),
    }


def _window_request(context: Mapping[str, Any]) -> "Request":
    """Return the interval of a scheduled run, or the one in the form."""
    from makewhole.window.interval import Request

    run, form = context["dag_run"], context["params"]
    if run.run_type in ("scheduled", "backfill"):
        start, end = run.data_interval_start, run.data_interval_end
    else:
        start, end = parse_moment(form.get("from")), parse_moment(form.get("to")) or datetime.now(UTC)
    return Request(
        id=run.run_id,
        start=start,
        end=end,
        plan_only=bool(form.get("plan_only")),
        reason=form.get("reason"),
    )


def parse_moment(text: str | None) -> datetime | None:
    """Read a time of the form; without an offset it is UTC.

    Raises:
        AirflowFailException: it is not a time.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise AirflowFailException(f"{text!r} is not a time; write it like 2026-01-31T02:00:00+00:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def settle() -> bool:
    """Tell whether an absence counts by now; the last minute is spent waiting here."""
    opened = opened_window(get_current_context())
    remaining = (datetime.fromisoformat(opened["settled_at"]) - datetime.now(UTC)).total_seconds()
    if remaining > POLL_SECONDS:
        logger.info("%s: an absence counts from %s on; looking again then", opened["label"], opened["settled_at"])
        return False
    if remaining > 0:
        logger.info("%s: waiting %.0f s until an absence counts", opened["label"], remaining)
        time.sleep(remaining)
    return True


@step
def plan() -> list[str]:
    """Freeze the plan when the gate failed; return the ids of the tasks to go on with."""
    from makewhole.compensation.approval.ask import approval_request
    from makewhole.compensation.plan_window import plan_window
    from makewhole.journal import window_results, windows
    from makewhole.journal.database import connect

    context = _load_context()
    with connect() as journal:
        report = window_results.gate_reports(journal, context.window).get(window_results.RECONCILED)
        plan_only = windows.is_plan_only(journal, context.window)
    if report is None or report.answer is not GateAnswer.FAIL:
        logger.info("the gate says %s: nothing to plan", report.answer.value if report else "nothing")
        return [CERTIFY]
    for failure in report.failures:
        logger.info("gate: %s", failure)
    frozen = plan_window(context)
    for refusal in frozen.refusals[:20]:
        logger.info("no action for a finding of %s: %s", refusal.hop, refusal.reason)
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
        found = read_unanswered(journal, context.pipeline, context.window)
    sentences = [sentence for one in found for sentence in one.sentences()]
    for sentence in sentences:
        logger.info("%s", sentence)
    return sentences


def _task_after(plan: Plan) -> str:
    if plan.state is PlanState.AWAITING_APPROVAL:
        return APPROVE
    return VERIFY if plan.state in (PlanState.REFUSED, PlanState.REJECTED) else COMPENSATE


@step
def compensate() -> int:
    """Run the plan; return the number of chunks that receipts prove."""
    from makewhole.compensation.execution.run_plan import compensate_window

    return len(compensate_window(_load_context(), lambda progress: logger.info("%s", progress)))


@step
def verify() -> dict[str, Any]:
    """Read the touched keys again and judge them anew."""
    from makewhole.compensation.verification.verify_window import verify_window

    def log_progress(done: int, total: int) -> None:
        logger.info("%d of %d gaps are whole or decided", done, total)

    found = verify_window(_load_context(), log_progress, stays_seconds=POLL_SECONDS)
    for failure in found.gate.failures:
        logger.info("gate: %s", failure)
    return {"whole": found.whole, "gaps": found.gaps, "gate": found.gate.answer.value}


@step
def certify() -> dict[str, Any]:
    """Certify the window, or fail the task with the reason why it stays open.

    The event of the pipeline's asset holds the head of the chain: number, hash, and who signed it.

    Raises:
        AirflowFailException: the window is not certified.
    """
    from makewhole.journal.database import connect
    from makewhole.orchestration.connections import signing_key
    from makewhole.window.certify import certify_window

    context, key = _load_context(), signing_key()
    with connect() as journal:
        closed = certify_window(journal, context.pipeline, context.window, context.storage, key)
    for revocation in closed.revoked:
        logger.warning("certificate %d is revoked: %s", revocation.revokes, revocation.uri)
    if closed.state is not WindowState.ERROR:
        log_unanswered(context)
    _log_older_open(context.window.label, closed)
    if closed.state is not WindowState.CERTIFIED or closed.certificate is None:
        raise AirflowFailException(f"{context.window.label} is not certified ({closed.state.value}): {closed.reason}")
    logger.info(
        "%s is certified, %d keys in flight handed over to the next window: %s",
        context.window.label,
        closed.handed_over,
        closed.certificate.uri,
    )
    _announce(get_current_context()["outlet_events"], context.pipeline.name, closed.certificate)
    return {
        "digest": closed.certificate.digest,
        "certificate": closed.certificate.uri,
        "handed_over": closed.handed_over,
        **_reach(context.window.label, closed),
    }


def _reach(label: str, closed: "ClosedWindow") -> dict[str, Any]:
    """Log how far the proof of a certified window reaches; return it, with what older windows leave open."""
    reach = {} if closed.certificate is None else closed.certificate.body.get("reach") or {}
    limits = reach.get("cannot_exclude", [])
    if reach:
        logger.info("%s is proven from the %s on", label, reach["from"])
    for limit in limits:
        logger.info("%s: not excluded: %s", label, limit["told"])
    older = closed.older_open
    return {
        "reach": reach.get("from"),
        "cannot_exclude": [limit["limit"] for limit in limits],
        "older_open": {"windows": older.windows, "findings": older.findings} if older else None,
    }


def _log_older_open(label: str, closed: "ClosedWindow") -> None:
    older = closed.older_open
    if older is not None and older.windows:
        logger.warning(
            "%s: %d older windows are open with %d findings; the first is window %d, which begins at %s",
            label,
            older.windows,
            older.findings,
            older.first_window,
            older.since or "the beginning",
        )


def _announce(outlet_events: Any, pipeline: str, certificate: "ChainEntry") -> None:
    """Put the head of the chain into the asset's event; Airflow takes the one of the two that the task has."""
    name, uri = certified_asset(pipeline)
    asset = Asset(name=name, uri=uri)
    head = chain_head(certificate)
    outlet_events[asset].extra = head
    outlet_events[AssetAlias(name=CERTIFIED_ALIAS)].add(asset, extra=head)


def chain_head(certificate: "ChainEntry") -> dict[str, Any]:
    """Return what the event says of the newest entry: enough to miss it later, and no data."""
    return {
        "ordinal": certificate.ordinal,
        "sha256": certificate.sha256,
        "window": certificate.number,
        "revision": certificate.revision,
        "signed_by": certificate.signed_by,
        "signature": certificate.signature,
        "uri": certificate.uri,
    }
