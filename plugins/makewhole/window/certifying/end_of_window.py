"""Describe how a window ended, for Airflow's pages: in one line, and by its numbers. No key and no value is in them."""

from collections.abc import Mapping
from typing import Any

from makewhole.journal import acceptances, incidents, plans
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.text import printable
from makewhole.model.verdict import GAPS
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.certifying.certificate_content import final_results
from makewhole.window.certifying.certify import ClosedWindow

_LENGTH_MOST = 500


def end_of_window(
    label: str,
    state: str,
    reason: str | None,
    *,
    gaps: int = 0,
    left: int = 0,
    plan: str | None,
    accepted: int,
    handed_over: int,
    certificate: int | None,
) -> str:
    """Return the line of a window: `label` names it, `gaps` counts those before the repair and `left` those after
    it, `plan` is the id of its plan with its state, `accepted` counts findings, `handed_over` keys, `certificate` is a
    number in the chain. At most 500 characters."""
    parts = [
        f"{label}: {state}",
        *([reason] if reason else []),
        *([f"{gaps:,} found, {max(0, gaps - left):,} whole again"] if gaps else []),
        *([f"plan {plan}"] if plan else []),
        *([f"{accepted:,} accepted"] if accepted else []),
        *([f"{handed_over:,} handed over"] if handed_over else []),
        *([f"certificate {certificate}"] if certificate is not None else []),
    ]
    return shortened("; ".join(printable(part) for part in parts))


def end_of_closed(journal: PgConnection, window: Window, closed: ClosedWindow) -> str:
    """Return the line of a window that was closed just now."""
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    by_hop = acceptances.count_accepted(journal, window)
    return end_of_window(
        f"window {window.number} (revision {window.revision}) of {window.pipeline}",
        closed.state.value,
        closed.reason,
        gaps=_gaps(hop_results.results(journal, window, hop_results.RECONCILED)),
        left=_gaps(final_results(journal, window)),
        plan=f"{stored.plan.id} {stored.plan.state.value}" if stored else None,
        accepted=sum(sum(counts.values()) for counts in by_hop.values()),
        handed_over=closed.handed_over,
        certificate=closed.certificate.ordinal if closed.certificate else None,
    )


def closed_document(journal: PgConnection, window: Window, closed: ClosedWindow) -> dict[str, Any]:
    """Return what a page shows of a window that was closed just now: its state, the kinds of its incidents, the keys of
    each hop by verdict as they were `found` and as they are after its repair (`hops`), its plan and its certificate. No
    key, no value."""
    stored = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
    certificate = closed.certificate
    return {
        "pipeline": window.pipeline,
        "window": window.number,
        "revision": window.revision,
        "state": closed.state.value,
        "reason": closed.reason,
        "incidents": sorted({incident.kind.value for incident in incidents.of(journal, window)}),
        "found": _counts(hop_results.results(journal, window, hop_results.RECONCILED)),
        "hops": _counts(final_results(journal, window)),
        "plan": stored
        and {"id": stored.plan.id, "state": stored.plan.state.value, "actions": dict(stored.plan.counts)},
        "certificate": certificate
        and {"number": certificate.ordinal, "sha256": certificate.sha256, "uri": certificate.uri},
    }


def _counts(results: Mapping[str, HopResult]) -> dict[str, dict[str, int]]:
    return {hop: vars(result.counts) for hop, result in sorted(results.items())}


def _gaps(results: Mapping[str, HopResult]) -> int:
    return sum(getattr(result.counts, verdict.value) for result in results.values() for verdict in GAPS)


def shortened(line: str) -> str:
    """Return a line of at most 500 characters, the last of them an ellipsis where it was longer."""
    return line if len(line) <= _LENGTH_MOST else f"{line[: _LENGTH_MOST - 1]}…"
