"""Certify windows of a pipeline whose steps never ran: what they would have committed is put into the journal."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from psycopg2.extras import Json
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal import certificates, windows
from makewhole.journal.certificates import ChainEntry
from makewhole.journal.database import connect
from makewhole.journal.results import gate_answers, hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.lake.storage import Storage
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window
from makewhole.signing.keys import SigningKey, sha256_of
from makewhole.window.certifying.certify import ClosedWindow, certify_window
from makewhole.window.configuration import judging_sha256
from tests.world.sql import run_sql

BEGINNING = datetime(2013, 1, 1, tzinfo=UTC)
_REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def _pipeline() -> Pipeline:
    names = (("a", PointKind.LEDGER), ("b", PointKind.STORE))
    points = {
        name: TablePoint(name=name, kind=kind, connection="db", table=name, key=("id",), time="at")
        for name, kind in names
    }
    return Pipeline(name="demo", points=points, hops=(Hop(source="a", target="b", remedies=_REPORT),))


@dataclass(kw_only=True)
class CertifiedPipeline:
    """A pipeline of one hop, and what its windows' steps commit."""

    journal: str
    folder: Path
    key: SigningKey = field(default_factory=SigningKey.new)
    pipeline: Pipeline = field(default_factory=_pipeline)

    @property
    def storage(self) -> Storage:
        return Storage(root=str(self.folder))

    @property
    def anchors(self) -> Path:
        return self.folder / "demo" / "certificates"

    def judge(self, number: int, revision: int = 1, *, missing: int = 0) -> Window:
        """Commit what the steps before `certify` commit, of a window in which so many keys are missing."""
        start = BEGINNING + timedelta(days=number - 1)
        window = Window(
            pipeline="demo",
            number=number,
            revision=revision,
            start=start,
            end=start + timedelta(days=1),
            opened_at=start + timedelta(days=1, minutes=5),
            ranges={},
        )
        counts = HopCounts(source_keys=5, matched=5 - missing, missing=missing)
        judged_with = judging_sha256(self.pipeline)
        answer = GateAnswer.FAIL if missing else GateAnswer.PASS
        report = GateReport(
            answer=answer,
            planned=3,
            evaluated=3,
            failures=("1 missing",) if missing else (),
            document={"judging_sha256": judged_with},
        )
        with connect(self.journal) as journal:
            configuration = {"judging_sha256": judged_with}
            request = f"{number}/{revision}"
            windows.insert(journal, window, request=request, plan_only=False, configuration=configuration)
            for point in self.pipeline.points:
                path = f"{window.prefix}/{point}/part"
                self.storage.write_bytes(path, point.encode())
                manifest = {"judging_sha256": judged_with, "sha256": {path: sha256(point.encode()).hexdigest()}}
                snapshot_manifests.commit_snapshot(journal, window, point, manifest)
            result = HopResult(hop="a→b", counts=counts, digest=f"{number}", files={"judging_sha256": judged_with})
            hop_results.commit_results(journal, window, hop_results.RECONCILED, [result])
            gate_answers.put_gate_report(journal, window, hop_results.RECONCILED, report)
        return window

    def certify(self, window: Window) -> ClosedWindow:
        """Close a window."""
        with connect(self.journal) as journal:
            return certify_window(journal, self.pipeline, window, self.storage, self.key)

    def close(self, number: int, revision: int = 1, *, missing: int = 0) -> ClosedWindow:
        """Take a window from its opening to its end."""
        return self.certify(self.judge(number, revision, missing=missing))

    def entries(self) -> list[ChainEntry]:
        """Return the chain, oldest entry first."""
        with connect(self.journal) as journal:
            return certificates.chain(journal, "demo")

    def rewrite(self, at: int, **changes: Any) -> None:
        """Change the body of an entry and its hash, as a person does who knows how the hash is made."""
        body = {**next(entry for entry in self.entries() if entry.ordinal == at).body, **changes}
        self.sql(
            "update makewhole.certificate set body = %s, sha256 = %s where ordinal = %s",
            Json(body),
            sha256_of(body),
            at,
        )

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in the journal, as a user who may write there."""
        return run_sql(self.journal, statement, *values)

    def verify(self, *options: str) -> "Verified":
        """Run `makewhole certificate verify` in this environment, which holds the public key alone."""
        public = self.folder / "public.pem"
        public.write_text(self.key.public.pem(), encoding="utf-8")
        keys = [] if "--public-key" in options else ["--public-key", str(public)]
        environment = {"MAKEWHOLE_JOURNAL_DSN": self.journal, "MAKEWHOLE_STORAGE": str(self.folder)}
        result = CliRunner().invoke(
            app, ["certificate", "verify", "demo", "--json", *keys, *options], env=environment, catch_exceptions=False
        )
        document = json.loads(result.stdout)
        return Verified(code=result.exit_code, problems=document["problems"], document=document)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The answer of `certificate verify`."""

    code: int
    problems: list[str]
    document: dict[str, Any]
