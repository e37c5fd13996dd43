"""Certify the window of a run, and tell the pipeline's asset of it."""

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, get_current_context
from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.window import WindowState
from makewhole.orchestration.steps.repairing import log_unanswered
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_context
from makewhole.orchestration.task_ids import CERTIFIED_ALIAS, certified_asset

if TYPE_CHECKING:
    from makewhole.journal.certificates import ChainEntry
    from makewhole.window.certify import ClosedWindow

logger = logging.getLogger(__name__)


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

    context, key = load_context(), signing_key()
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
