"""Certify the window of a run, and report it to the pipeline's asset."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from makewhole.model.window import WindowState
from makewhole.orchestration.steps.recorded_failure import UncertifiedError, recorded
from makewhole.orchestration.steps.repairing import log_unanswered
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.watermark import announce
from makewhole.orchestration.steps.window_of_run import load_context
from makewhole.orchestration.task_ids import CLOSED_WINDOW, END_OF_WINDOW
from makewhole.orchestration.telemetry import lineage

if TYPE_CHECKING:
    from makewhole.journal.certificates import ChainEntry
    from makewhole.model.window import Window
    from makewhole.signing.keys import SigningKey
    from makewhole.sql import PgConnection
    from makewhole.window.certifying.certify import ClosedWindow
    from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)


@step
@recorded
def certify() -> dict[str, Any]:
    """Certify the window, or fail the task with the reason why it stays open.

    The event of the pipeline's asset holds the head of the chain: number, hash, and who signed it.

    Raises:
        UncertifiedError: the window is not certified.
    """
    from makewhole.journal.database import connect
    from makewhole.orchestration.deployment.connections import signing_key
    from makewhole.window.certifying.certify import certify_window

    context, key = load_context(), signing_key()
    _open_again(context, key)
    with connect() as journal:
        closed = certify_window(journal, context.pipeline, context.window, context.storage, key)
        _measure(journal, context.window, closed)
        _leave_for_pages(journal, context.window, closed)
        _leave_lineage(journal, context, closed.state)
    for revocation in closed.revoked:
        logger.warning("certificate %d is revoked: %s", revocation.revokes, revocation.uri)
    if closed.state is not WindowState.ERROR:
        log_unanswered(context)
    _log_older_open(context.window.label, closed)
    if closed.state is not WindowState.CERTIFIED or closed.certificate is None:
        raise UncertifiedError(f"{context.window.label} is not certified ({closed.state.value}): {closed.reason}")
    logger.info(
        "%s is certified%s, %d keys in flight handed over to the next window: %s",
        context.window.label,
        f", with {closed.certificate.accepted:,} accepted" if closed.certificate.accepted else "",
        closed.handed_over,
        closed.certificate.uri,
    )
    announce(get_current_context()["outlet_events"], context.pipeline.name, closed.certificate)
    _log_reach(context.window.label, closed.certificate)
    return run_result(closed, closed.certificate)


def _leave_for_pages(journal: "PgConnection", window: "Window", closed: "ClosedWindow") -> None:
    """Leave how the window ended where Airflow's pages find it."""
    from makewhole.window.certifying.end_of_window import closed_document, end_of_closed

    ti = get_current_context()["ti"]
    ti.xcom_push(key=END_OF_WINDOW, value=end_of_closed(journal, window, closed))
    ti.xcom_push(key=CLOSED_WINDOW, value=closed_document(journal, window, closed))


def _leave_lineage(journal: "PgConnection", context: "WindowContext", state: WindowState) -> None:
    """Leave what Airflow's provider of OpenLineage asks for, where it is installed. Whatever goes wrong is logged
    alone: it may not change the end of the task."""
    if not lineage.is_reported():
        return
    from makewhole.journal import acceptances
    from makewhole.window.certifying.certificate_content import final_results

    try:
        counts = {hop: result.counts for hop, result in final_results(journal, context.window).items()}
        accepted = acceptances.count_accepted(journal, context.window)
        lineage.leave(lineage.lineage_of(context.pipeline, context.connections, counts, accepted, state))
    except Exception as error:
        logger.warning("nothing is reported to OpenLineage: %s", type(error).__name__)


def _measure(journal: "PgConnection", window: "Window", closed: "ClosedWindow") -> None:
    """Send how the window ended as metrics: with the counts after its repair, where there was one."""
    from makewhole.journal.results import hop_results
    from makewhole.orchestration.telemetry import metrics

    results = hop_results.results(journal, window, hop_results.RECONCILED)
    results = {**results, **hop_results.results(journal, window, hop_results.VERIFIED)}
    counts = {hop: result.counts for hop, result in results.items()}
    older = closed.older_open.windows if closed.older_open else 0
    is_certified = closed.state is WindowState.CERTIFIED
    metrics.send(metrics.of_window(window.pipeline, counts, is_certified=is_certified, older_open=older))


def _open_again(context: "WindowContext", key: "SigningKey") -> None:
    """Open windows again whose accepted findings a person's word does not cover any more."""
    from makewhole.compensation.acceptance.carry_out import open_again_before
    from makewhole.window.context import window_context

    for opened in open_again_before(context, lambda window: window_context(window, context.pipeline), key):
        again, closed = opened.again, opened.closed
        logger.warning("window %d: %s; it is %s", again.window, again.sentence(), closed.state.value)
        for revocation in closed.revoked:
            logger.warning("certificate %d is revoked: %s", revocation.revokes, revocation.uri)


def _log_reach(label: str, certificate: "ChainEntry") -> None:
    reach = _reach(certificate)
    if reach:
        logger.info("%s is proven from the %s on", label, reach["from"])
    for limit in reach.get("cannot_exclude", []):
        logger.info("%s: not excluded: %s", label, limit["message"])


def run_result(closed: "ClosedWindow", certificate: "ChainEntry") -> dict[str, Any]:
    """Return the result of a run: the certificate, how far its proof reaches, and what is left to other windows."""
    reach, older = _reach(certificate), closed.older_open
    return {
        "digest": certificate.digest,
        "certificate": certificate.uri,
        "handed_over": closed.handed_over,
        "accepted": certificate.accepted,
        "reach": reach.get("from"),
        "cannot_exclude": [limit["limit"] for limit in reach.get("cannot_exclude", [])],
        "older_open": {"windows": older.windows, "findings": older.findings} if older else None,
    }


def _reach(certificate: "ChainEntry") -> Mapping[str, Any]:
    """Return what the certificate says of its reach; nothing, in one from before it did."""
    reach: Mapping[str, Any] = certificate.body.get("reach") or {}
    return reach


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
