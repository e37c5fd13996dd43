"""Collect what makewhole says of a window, in a form that can be compared as a whole and written down."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.model.incident import Incident
from makewhole.model.refusal import Refusal
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.windows import Found

_TOPIC_ID = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{22}(?![\w-])")  # 16 bytes in base64
Happened = tuple[str, int | None, int | None, int | None]
"""An incident: kind, partition, and the offsets `[lo, hi)` where it has them."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Hold what makewhole says of one window; the same is written down for what it should say.

    `found`, `matched` and `before_baseline` are by hop; hops without such keys are left out of `found` and
    `before_baseline`, and kinds of offsets that did not occur out of `accounting`. A `reason` that is expected is the
    beginning of the one that is given (`""`: any). `reach` is where the proof of a certified window begins, `ledger` or
    `log`, and need not be expected: it follows from the hops; `not_excluded` is for the page. `messages` is what a
    scenario asks for besides: what became of the findings, a line of a command.
    """

    state: str
    accounting: Mapping[str, int]
    matched: Mapping[str, int]
    found: Mapping[str, Found] = field(default_factory=dict)
    before_baseline: Mapping[str, int] = field(default_factory=dict)
    incidents: tuple[Happened, ...] = ()
    reason: str | None = None
    reach: str | None = None
    not_excluded: tuple[str, ...] = field(default=(), compare=False)
    messages: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Findings by number only: their keys are of no interest to a reader."""
        return {
            "state": self.state,
            "reason": self.reason,
            "accounting": dict(self.accounting),
            "matched": dict(self.matched),
            "before_baseline": dict(self.before_baseline),
            "found": {
                hop: [[verdict, cause, count] for (verdict, cause), count in sorted(Counter(verdicts.values()).items())]
                for hop, verdicts in self.found.items()
            },
            "incidents": [list(item) for item in self.incidents],
            "reach": self.reach,
            "not_excluded": list(self.not_excluded),
            "messages": list(self.messages),
        }


def judged(journal_dsn: str, context: WindowContext, closed: ClosedWindow) -> Judged:
    """Return what was committed of this revision of the window."""
    with connect(journal_dsn) as journal:
        results = hop_results.results(journal, context.window)
        manifest = snapshot_manifests.snapshots(journal, context.window).get("orders", {})
        happened = incidents.of(journal, context.window)
        findings = [item.finding for item in window_findings.findings(journal, context.window)]
    by_hop: dict[str, Found] = {}
    for finding in findings:
        by_hop.setdefault(finding.hop, {})[finding.key] = (finding.verdict.value, finding.cause.value)
    return Judged(
        state=closed.state.value,
        reason=closed.reason and _without_names(closed.reason, context),
        accounting={name: count for name, count in (manifest.get("accounting") or {}).items() if count},
        matched={hop.name: results[hop.name].counts.matched for hop in context.pipeline.hops if hop.name in results},
        found=by_hop,
        before_baseline={
            hop: result.counts.before_baseline
            for hop, result in sorted(results.items())
            if result.counts.before_baseline
        },
        incidents=tuple(sorted((happening(item) for item in happened), key=str)),
        reach=None if closed.certificate is None else closed.certificate.body["reach"]["from"],
        not_excluded=() if closed.certificate is None else _not_excluded(closed.certificate.body),
    )


def outcomes(journal_dsn: str, context: WindowContext) -> tuple[str, ...]:
    """Return what became of the findings, hop by hop; of a refusal with the word for its reason."""
    by_hop: dict[str, Counter[str]] = {}
    with connect(journal_dsn) as journal:
        for item in window_findings.findings(journal, context.window):
            reason = f" (`{Refusal.of_text(item.reason).code}`)" if item.outcome == "refused" and item.reason else ""
            by_hop.setdefault(item.finding.hop, Counter())[item.outcome + reason] += 1
    return tuple(
        f"{hop}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(counted.items()))}"
        for hop, counted in sorted(by_hop.items())
    )


def _not_excluded(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a certificate cannot exclude, in its words."""
    return tuple(limit["message"] for limit in certificate["reach"]["cannot_exclude"])


def _without_names(reason: str, context: WindowContext) -> str:
    """The same text in every run: a scenario's topic has a name and an id of its own."""
    for parts in context.window.ranges.values():
        for part in parts:
            reason = reason.replace(part.topic, "orders")
    return _TOPIC_ID.sub("…", reason)


def happening(incident: Incident) -> Happened:
    """The incident without its details."""
    return (incident.kind.value, incident.partition, incident.lo, incident.hi)
