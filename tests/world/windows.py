"""Open, snapshot, reconcile, validate and certify the windows of a shop, step by step."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateReport
from makewhole.model.verdict import HopCounts
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import ClosedWindow, certify_window
from makewhole.window.context import WindowContext, connections_of, window_context
from makewhole.window.opening.open import OpenedWindow, Request, open_interval
from makewhole_spark.carrier import Carrier
from makewhole_spark.reconcile.judge_window import reconcile
from makewhole_spark.snapshot.take import take_snapshots
from makewhole_spark.validate import ask_gate, keep_answer
from tests.world.orders import BORN, DAY
from tests.world.shop import Shop

Found = dict[str, tuple[str, str]]
"""Key → (verdict, cause)."""


@dataclass(kw_only=True)
class ReconciledShop(Shop):
    """A shop, and the steps of its windows.

    `buckets`: in so many the next windows are read, and not in as many as their size asks for.
    """

    carrier: Carrier
    buckets: int | None = None

    # The steps

    def ask(
        self,
        day: int = 0,
        request: str | None = None,
        journal: str | None = None,
        end: datetime | None = None,
        *,
        read_again: bool = False,
    ) -> OpenedWindow:
        """Open the window that ends with a day (or at any moment), or a revision of it."""
        wanted = Request(id=request or uuid.uuid4().hex, end=end or BORN + (day + 1) * DAY, read_again=read_again)
        with connect(journal or self.journal) as connection:
            return open_interval(connection, self.pipeline, connections_of(self.pipeline), wanted)

    def open(self, day: int = 0, *, read_again: bool = False) -> WindowContext:
        """Open the window that ends with a day."""
        return window_context(self.ask(day, read_again=read_again).window, self.pipeline)

    def snapshot(self, context: WindowContext, parallelism: int = 2) -> list[str]:
        """Take the snapshots; return the points."""
        with connect(self.journal) as journal:
            return take_snapshots(self.carrier, journal, context, parallelism, self.buckets)

    def reconcile(self, context: WindowContext) -> None:
        """Compare the snapshots."""
        with connect(self.journal) as journal:
            reconcile(self.carrier, journal, context)

    def judge(self, context: WindowContext) -> Self:
        """Take the snapshots and compare them."""
        self.snapshot(context)
        self.reconcile(context)
        return self

    def validate(self, context: WindowContext) -> GateReport:
        """Ask the gate."""
        with connect(self.journal) as journal:
            report = ask_gate(self.carrier, journal, context)
            keep_answer(journal, context, report)
        return report

    def certify(self, context: WindowContext) -> ClosedWindow:
        """Close the window."""
        with connect(self.journal) as journal:
            key = signing_key_from_environment()
            return certify_window(journal, context.pipeline, context.window, Storage.from_environment(), key)

    def judged(self, day: int = 0) -> WindowContext:
        """Take a window as far as its findings."""
        context = self.open(day)
        self.judge(context)
        return context

    def judge_and_ask_the_gate(self, day: int = 0) -> WindowContext:
        """Take a window up to the point where a plan could be made."""
        context = self.judged(day)
        self.validate(context)
        return context

    def whole_way(self, day: int = 0) -> tuple[WindowContext, ClosedWindow]:
        """Take a window from its opening to its end, without repair."""
        context = self.judge_and_ask_the_gate(day)
        return context, self.certify(context)

    # The results

    def manifests(self, context: WindowContext) -> dict[str, dict[str, Any]]:
        """Return the manifest of each snapshot, by point."""
        with connect(self.journal) as journal:
            return snapshot_manifests.snapshots(journal, context.window)

    def found(self, context: WindowContext, hop: str) -> Found:
        """Return the findings of a hop."""
        with connect(self.journal) as journal:
            return {
                item.finding.key: (item.finding.verdict.value, item.finding.cause.value)
                for item in window_findings.findings(journal, context.window)
                if item.finding.hop == hop
            }

    def evidence(self, context: WindowContext, hop: str, key: str) -> Mapping[str, Any]:
        """Return the evidence of one finding."""
        with connect(self.journal) as journal:
            items = [item.finding for item in window_findings.findings(journal, context.window)]
        return next(item.evidence for item in items if (item.hop, item.key) == (hop, key))

    def outcomes(self, context: WindowContext) -> dict[str, str]:
        """Return what became of each finding, by key."""
        with connect(self.journal) as journal:
            return {item.finding.key: item.outcome for item in window_findings.findings(journal, context.window)}

    def outcome_of(self, context: WindowContext, hop: str, key: str) -> tuple[str, str | None]:
        """Return what became of one finding, and why."""
        with connect(self.journal) as journal:
            items = window_findings.findings(journal, context.window)
        return next((item.outcome, item.reason) for item in items if (item.finding.hop, item.finding.key) == (hop, key))

    def verified_counts(self, context: WindowContext, hop: str) -> HopCounts:
        """Return the counts of a hop after its gaps were judged again."""
        with connect(self.journal) as journal:
            return hop_results.results(journal, context.window, hop_results.VERIFIED)[hop].counts

    def counts(self, context: WindowContext, hop: str) -> HopCounts:
        """Return the counts of a hop."""
        with connect(self.journal) as journal:
            return hop_results.results(journal, context.window)[hop].counts

    def accounting(self, context: WindowContext) -> dict[str, int]:
        """Return what the offsets of the topic were."""
        return dict(self.manifests(context)["orders"]["accounting"])

    def certified_hops(self, context: WindowContext) -> dict[str, dict[str, Any]]:
        """Return what the certificate of a revision says of its hops."""
        with connect(self.journal) as journal:
            certificate = certificates.of_revision(journal, context.window)
        assert certificate is not None
        return dict(certificate.body["hops"])

    def certificates(self) -> int:
        """Count the certificates in the journal."""
        return int(self.journal_sql("select count(*) from makewhole.certificate")[0][0])
