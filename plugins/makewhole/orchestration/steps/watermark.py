"""Report how far a pipeline is proven to its assets: with each certificate, and when a certificate was revoked.

DAG files import this module, so what the step needs is imported when it runs.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from makewhole.orchestration.notices.tasks import pipeline_of
from makewhole.orchestration.steps.asset_events import asset_of, update_asset
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.task_ids import CERTIFIED_ALIAS, REVOKED_ALIAS, certified_asset, revoked_asset
from makewhole.orchestration.telemetry.metrics import of_watermark, send

if TYPE_CHECKING:
    from makewhole.journal.certificates import ChainEntry, Watermark

logger = logging.getLogger(__name__)
_MOST = 100
"""How many revocations an event describes, the newest ones: it is stored by Airflow, and shown whole."""


def announce(events: Any, pipeline: str, certificate: "ChainEntry") -> None:
    """Put a certificate, and how far the pipeline is proven with it, into the event of its asset."""
    from makewhole.journal import certificates
    from makewhole.journal.database import connect

    with connect() as journal:
        watermark = certificates.watermark(journal, pipeline)
    extra = certified_extra(pipeline, certificate) | watermark_fields(watermark)
    update_asset(events, certified_asset(pipeline), CERTIFIED_ALIAS, extra)


def certified_extra(pipeline: str, certificate: "ChainEntry") -> dict[str, Any]:
    """Return what the event says of a certificate: its window, the interval and the keys of each hop, enough to miss
    the entry later (number, hash, signature), how many keys it leaves to the next window, and no data."""
    body = certificate.body
    hops: Mapping[str, Any] = body.get("hops") or {}
    return {
        "pipeline": pipeline,
        "window": certificate.number,
        "revision": certificate.revision,
        "start": body.get("start"),
        "end": body.get("end"),
        "keys": {hop: counts.get("source_keys") for hop, counts in hops.items()},
        "handed_over": certificate.handed_over,
        "accepted": certificate.accepted,
        "ordinal": certificate.ordinal,
        "sha256": certificate.sha256,
        "signed_by": certificate.signed_by,
        "signature": certificate.signature,
        "uri": certificate.uri,
    }


def watermark_fields(watermark: "Watermark | None") -> dict[str, Any]:
    """Return how far a pipeline is proven as events have it. Of two events that with the higher `head` is newer."""
    until = watermark.until if watermark else None
    return {
        "head": watermark.head if watermark else 0,
        "verified_window": watermark.window if watermark else None,
        "verified_until": until.isoformat() if until else None,
    }


@step
def report(*, has_certificates: bool) -> dict[str, Any]:
    """Report what came into the chain since it was reported last, whatever put it there: revocations, and where
    `has_certificates` the newest certificate. Skipped where nothing did. The last events of the assets say what was
    reported, so that an end in the middle leaves out none.

    Raises:
        AirflowSkipException: there is nothing to report.
    """
    from makewhole.journal import certificates
    from makewhole.journal.database import connect
    from makewhole.journal.deployment.schema_version import require_current

    context = get_current_context()
    require_current()
    name = pipeline_of(context)
    if name is None:
        raise AirflowSkipException("the run names no pipeline")
    events = context["outlet_events"]
    reported = _last_reported(context, revoked_asset(name))
    with connect() as journal:
        # The watermark is read first: a revocation that comes in between is newer than it, and is reported next time.
        mark = certificates.watermark(journal, name)
        revoked = certificates.revocations_after(journal, name, reported)
        issued = {entry.ordinal: certificates.entry(journal, name, entry.revokes or 0) for entry in revoked}
        newest = certificates.entry(journal, name, mark.head) if mark and has_certificates else None
    send(of_watermark(name, mark, datetime.now(UTC)))
    known = [entry for entry in revoked if mark is not None and entry.ordinal <= mark.head]
    if known:
        update_asset(
            events, revoked_asset(name), REVOKED_ALIAS, revoked_extra(name, known, issued) | watermark_fields(mark)
        )
    is_new = (
        newest is not None
        and newest.revokes is None
        and newest.ordinal > _last_reported(context, certified_asset(name))
    )
    if newest is not None and is_new:
        extra = certified_extra(name, newest) | watermark_fields(mark)
        update_asset(events, certified_asset(name), CERTIFIED_ALIAS, extra)
    if not (known or is_new):
        raise AirflowSkipException(f"no certificate of {name} was revoked since entry {reported} of its chain")
    until = watermark_fields(mark)["verified_until"]
    for entry in known:
        logger.warning("certificate %s of window %d is revoked: %s", entry.revokes, entry.number, entry.uri)
    logger.info("%s is proven until %s", name, until or "nowhere: not even its first window")
    return {"pipeline": name, "revoked": len(known), "verified_until": until}


def revoked_extra(
    pipeline: str, revoked: Sequence["ChainEntry"], issued: Mapping[int, "ChainEntry | None"]
) -> dict[str, Any]:
    """Return what the event says of revocations: the newest entry, since when data is not proven as it was (None: from
    the beginning), the windows with why, and how many are left out. `issued`: what each entry revokes, by its number.
    """
    starts = {ordinal: entry.body.get("start") if entry else None for ordinal, entry in issued.items()}
    known = [start for entry in revoked if (start := starts[entry.ordinal]) is not None]
    return {
        "pipeline": pipeline,
        "ordinal": revoked[-1].ordinal,
        "sha256": revoked[-1].sha256,
        "since": min(known, key=datetime.fromisoformat) if len(known) == len(revoked) else None,
        "revoked": [
            {
                "window": entry.number,
                "revision": entry.revision,
                "start": starts[entry.ordinal],
                "revokes": entry.revokes,
                "ordinal": entry.ordinal,
                "because": entry.body.get("because"),
                "uri": entry.uri,
            }
            for entry in revoked[-_MOST:]
        ],
        "left_out": max(0, len(revoked) - _MOST),
    }


def _last_reported(context: Mapping[str, Any], name_and_uri: tuple[str, str]) -> int:
    """Return the newest entry of the chain that an asset has an event of; 0: it has none that says so."""
    events = context["inlet_events"][asset_of(name_and_uri)]
    newest = next(iter(events.ascending(False).limit(1)), None)
    ordinal = None if newest is None else (newest.extra or {}).get("ordinal")
    return ordinal if isinstance(ordinal, int) else 0
