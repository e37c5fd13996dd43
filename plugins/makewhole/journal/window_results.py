"""Read and write what a window's steps commit: snapshots, results, findings, gate reports."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from psycopg2.extras import Json, execute_values

from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.pipeline import Hop
from makewhole.model.plan import copy_line
from makewhole.model.verdict import GAPS, Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Window
from makewhole.sql import CopyLines, PgConnection, load_queries, rows_in_pieces

RECONCILED, VERIFIED = "reconciled", "verified"
MET_FAR_AHEAD = "met_far_ahead"
"""The name in the files of a result of the number of keys whose rows the window met, and whose record is far ahead."""

_ROWS_OF_A_STATEMENT = 1000
_NUL = "\\u0000"


@dataclass(frozen=True, kw_only=True)
class HopResult:
    """The counts of a hop at a stage. `files`: the summary, and what was written, by paths below the storage root."""

    hop: str
    counts: HopCounts
    digest: str
    files: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgedFinding:
    """A finding with its outcome: open, repaired, contained, reversed, erased, handed_over or refused."""

    finding: Finding
    outcome: str = "open"
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Handover:
    """A key that an earlier window left to the next one. `since`: the S1 of the window that first judged it pending."""

    hop: str
    key: str
    key_hash: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The keys that a window hands over on a hop: their number, and since when the first of them waits."""

    keys: int
    since: datetime


def commit_snapshot(journal: PgConnection, window: Window, point: str, manifest: Mapping[str, Any]) -> bool:
    """Write the manifest with which a snapshot exists; the first one stays. Tells whether it was this one."""
    return bool(_run(journal, "insert_snapshot", **_scope(window), point=point, manifest=Json(manifest)))


def snapshots(journal: PgConnection, window: Window) -> dict[str, dict[str, Any]]:
    """Return the committed manifests of this revision by point."""
    return dict(_run(journal, "snapshots", **_scope(window)))


def fullest_snapshots(journal: PgConnection, window: Window) -> dict[str, dict[str, Any]]:
    """Return manifests of the window by point: those of the compared revision (`revision`) that could read most of its
    offsets."""
    return dict(_run(journal, "fullest_snapshots", pipeline=window.pipeline, number=window.number))


def snapshots_before(journal: PgConnection, window: Window, point: str) -> list[dict[str, Any]]:
    """Return the manifests of a point that earlier compared revisions of the window committed, oldest first."""
    return [manifest for (manifest,) in _run(journal, "snapshots_before", **_scope(window), point=point)]


def read_with(manifest: Mapping[str, Any]) -> str | None:
    """Return the digest of the configuration that a snapshot was read with, by its manifest. Where that does not say
    it, the digest of all that decides a verdict: an older makewhole knew nothing that makes them differ."""
    found: str | None = manifest.get("reading_sha256", manifest.get("judging_sha256"))
    return found


def lock_results(journal: PgConnection, window: Window) -> None:
    """Wait until no other process commits results of this revision; held until the transaction ends."""
    _run(journal, "lock_results", **_scope(window))


def commit_results(journal: PgConnection, window: Window, stage: str, results: Iterable[HopResult]) -> None:
    """Replace the results of a stage."""
    _run(journal, "delete_results", **_scope(window), stage=stage)
    for result in results:
        _run(
            journal,
            "insert_result",
            **_scope(window),
            hop=result.hop,
            stage=stage,
            counts=Json(vars(result.counts)),
            digest=result.digest,
            files=Json(result.files),
        )


def results(journal: PgConnection, window: Window, stage: str = RECONCILED) -> dict[str, HopResult]:
    """Return the results of a stage by hop; empty when the stage has not committed."""
    return {
        hop: HopResult(hop=hop, counts=HopCounts(**counts), digest=digest, files=files)
        for hop, counts, digest, files in _run(journal, "results", **_scope(window), stage=stage)
    }


@dataclass(frozen=True, kw_only=True)
class CertifiedFiles:
    """The files of a hop's result in a certified revision of a window: those that reconcile wrote, the file of the keys
    that were repaired, and the files by bucket of the two slices, where clean keys are known by them."""

    number: int
    revision: int
    end: datetime
    files: Mapping[str, Any]
    repaired: str | None
    source: Mapping[str, Sequence[str]]
    target: Mapping[str, Sequence[str]]


def certified_files(journal: PgConnection, window: Window, hop: Hop, numbers: Collection[int]) -> list[CertifiedFiles]:
    """Return the files of the newest certified revisions of windows on a hop, oldest first; this revision is left
    out."""
    points = {"hop": hop.name, "source": hop.source, "target": hop.target}
    rows = _run(journal, "certified_files", **_scope(window), **points, numbers=sorted(numbers))
    return [
        CertifiedFiles(
            number=number,
            revision=revision,
            end=end,
            files=files,
            repaired=repaired,
            source=source or {},
            target=target or {},
        )
        for number, revision, end, files, repaired, source, target in rows
    ]


@dataclass(frozen=True, kw_only=True)
class MetAloneFiles:
    """The files by bucket of the keys whose rows a certified revision of a window met without a record.
    `has_far_ahead`: the record of some has a time so far ahead that any later window may have it."""

    number: int
    end: datetime
    has_far_ahead: bool
    files: Mapping[str, str]


def certified_met_alone(journal: PgConnection, window: Window, hop: str, moment: datetime) -> list[MetAloneFiles]:
    """Return those of the certified windows before one that end after a moment, or have any far ahead, oldest first."""
    rows = _run(journal, "certified_met_alone", **_scope(window), hop=hop, moment=moment)
    return [
        MetAloneFiles(number=number, end=end, has_far_ahead=has_far_ahead, files=files or {})
        for number, end, has_far_ahead, files in rows
    ]


@dataclass(frozen=True, kw_only=True)
class Strangers:
    """The number of keys whose rows a window met without a record: those that its findings name (`named`), and those
    from before the baseline or with a record far ahead (`unnamed`). `told`: the number of its unexpected and
    undecidable findings, of which the journal may have a part. `files` of all of these keys by bucket; None where an
    older makewhole judged it."""

    number: int
    revision: int
    named: int
    unnamed: int
    told: int
    files: Mapping[str, str] | None


def strangers(journal: PgConnection, window: Window, hop: str) -> list[Strangers]:
    """Return the windows before one that met such keys on a hop, in their newest compared revisions, oldest first."""
    rows = _run(journal, "strangers", **_scope(window), hop=hop)
    names = tuple(Strangers.__dataclass_fields__)
    return [Strangers(**dict(zip(names, row, strict=True))) for row in rows]


def commit_findings(journal: PgConnection, window: Window, findings: Iterable[Finding]) -> int:
    """Replace the findings of this revision. Returns their number."""
    _run(journal, "delete_findings", **_scope(window))
    lines = CopyLines(copy_line(row) for row in _finding_rows(window, findings))
    with journal.cursor() as cursor:
        cursor.copy_expert(load_queries("window_results")["copy_findings_in"].rstrip(";"), lines)
    return lines.given


def add_findings(journal: PgConnection, window: Window, findings: Iterable[Finding]) -> None:
    """Write findings of this revision beside those that are there; what is there stays as it is."""
    _insert_many(journal, "add_findings", _finding_rows(window, findings))


def _finding_rows(window: Window, findings: Iterable[Finding]) -> Iterator[Sequence[Any]]:
    return (
        (
            window.pipeline,
            window.number,
            window.revision,
            finding.hop,
            _storable(finding.key),
            finding.key_hash,
            finding.verdict.value,
            finding.cause.value,
            _evidence_text(finding.evidence),
        )
        for finding in findings
    )


def _evidence_text(evidence: Mapping[str, Any]) -> str:
    text = json.dumps(evidence)
    return json.dumps(_storable_in(evidence)) if _NUL in text else text


def _storable(key: str) -> str:
    """Escape NUL, which PostgreSQL's text cannot hold; the hash still tells such keys apart."""
    return key.replace("\x00", "\\u0000")


def _storable_in(value: Any) -> Any:
    """Escape NUL in every text inside evidence: a compared value of a record may be any text."""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, Mapping):
        return {_storable(name): _storable_in(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable_in(inner) for inner in value]
    return value


def findings(journal: PgConnection, window: Window) -> list[JudgedFinding]:
    """Return the findings of this revision with their outcomes, by hop, verdict and key."""
    return [
        JudgedFinding(
            finding=Finding(
                hop=hop, key=key, key_hash=key_hash, verdict=Verdict(verdict), cause=Cause(cause), evidence=evidence
            ),
            outcome=outcome,
            reason=reason,
        )
        for hop, key, key_hash, verdict, cause, evidence, outcome, reason in _run(journal, "findings", **_scope(window))
    ]


def open_findings(journal: PgConnection, window: Window, verdicts: Sequence[str], most: int) -> list[Finding]:
    """Return the open findings of some verdicts, of each hop and verdict the first so many by key."""
    return [
        Finding(hop=hop, key=key, key_hash=key_hash, verdict=Verdict(verdict), cause=Cause(cause), evidence=evidence)
        for hop, key, key_hash, verdict, cause, evidence in _run(
            journal, "open_findings", **_scope(window), verdicts=list(verdicts), most=most
        )
    ]


def count_open(journal: PgConnection, window: Window) -> dict[tuple[str, str], int]:
    """Count what is open in this revision, by hop and verdict. Keys that were counted, and of which the journal kept no
    finding because there are too many, are open."""
    counted = results(journal, window)
    left = {
        (hop, verdict.value): getattr(result.counts, verdict.value)
        for hop, result in counted.items()
        for verdict in GAPS
    }
    for hop, verdict, kept, is_open in _run(journal, "count_findings", **_scope(window)):
        left[hop, verdict] = max(0, left.get((hop, verdict), 0) - kept) + is_open
    return left


def count_left_out(journal: PgConnection, window: Window) -> dict[tuple[str, Verdict], int]:
    """Count the findings that reconcile counted and the journal did not take, because there are too many, by hop and
    verdict; those of which it has all are not in it. The files of the results have them."""
    kept = {(hop, verdict): number for hop, verdict, number, _ in _run(journal, "count_findings", **_scope(window))}
    beyond = {
        (hop, verdict): getattr(result.counts, verdict.value) - kept.get((hop, verdict.value), 0)
        for hop, result in results(journal, window).items()
        for verdict in Verdict
        if verdict.is_finding
    }
    return {kind: keys for kind, keys in beyond.items() if keys > 0}


def count_outcomes(journal: PgConnection, window: Window) -> dict[tuple[str, str], int]:
    """Count the findings of this revision by verdict and outcome."""
    rows = _run(journal, "count_outcomes", **_scope(window))
    return {(verdict, outcome): count for verdict, outcome, count in rows}


def set_outcomes(journal: PgConnection, window: Window, judged: Sequence[JudgedFinding]) -> None:
    """Write the outcomes of findings, where they are not what they were, and `compared` of their evidence: the values
    that verify found to differ."""
    columns = {
        "hops": [item.finding.hop for item in judged],
        "hashes": [item.finding.key_hash for item in judged],
        "outcomes": [item.outcome for item in judged],
        "reasons": [item.reason for item in judged],
        "compared": [json.dumps(_storable_in(_compared(item.finding.evidence))) for item in judged],
    }
    _run(journal, "set_outcomes", **_scope(window), **columns)


def _compared(evidence: Mapping[str, Any]) -> dict[str, Any]:
    return {name: evidence[name] for name in ("compared",) if name in evidence}


def commit_handovers(journal: PgConnection, window: Window, keys: Iterable[Handover]) -> dict[str, int]:
    """Replace the keys that this revision hands over. Returns their number by hop, as the table has them afterwards."""
    _run(journal, "delete_handovers", **_scope(window))
    scope = (window.pipeline, window.number, window.revision)
    rows = ((*scope, item.hop, _storable(item.key), item.key_hash, item.since) for item in keys)
    _insert_many(journal, "insert_handovers", rows)
    return dict(_run(journal, "count_handovers", **_scope(window)))


def waiting_by_hop(journal: PgConnection, window: Window) -> dict[str, Waiting]:
    """Return what this revision hands over to the next window, by hop; hops that hand over nothing are not in it."""
    rows = _run(journal, "waiting_by_hop", **_scope(window))
    return {hop: Waiting(keys=keys, since=since) for hop, keys, since in rows}


def handover_ids(journal: PgConnection, window: Window) -> Iterator[str]:
    """Yield `hop|key hash` of each key that this revision handed over, by code points, without holding all of them."""
    with journal.cursor("handover_ids") as cursor:
        cursor.execute(load_queries("window_results")["handover_ids"], _scope(window))
        for (identity,) in cursor:
            yield identity


def handovers(
    journal: PgConnection, pipeline: str, number: int, hop: str | None = None
) -> Iterator[list[tuple[str, str, str, datetime]]]:
    """Yield (hop, key, key hash, since when it waits) of the keys that the newest judged revision of window `number`
    handed over to the next, and those of older revisions that it could not read, so many at a time. `hop`: only those
    of one hop."""
    yield from rows_in_pieces(
        journal, "window_results", "handovers", {"pipeline": pipeline, "number": number, "hop": hop}
    )


def put_key_run(journal: PgConnection, window: Window, point: str, files: Mapping[str, str], keys: int) -> None:
    """Add this window's run to the key index of a topic; `files` is bucket → file."""
    _run(journal, "put_key_run", **_scope(window), point=point, files=Json(files), keys=keys)


def plans_of(journal: PgConnection, window: Window) -> list[str]:
    """Return the ids of all plans made for this window, whatever the revision."""
    return [plan for (plan,) in _run(journal, "plans_of", pipeline=window.pipeline, number=window.number)]


def frozen_at(journal: PgConnection, plan: str) -> datetime:
    """Return when a plan was frozen."""
    moment: datetime = _run(journal, "frozen_at", plan=plan)[0][0]
    return moment


def put_gate_report(journal: PgConnection, window: Window, stage: str, report: GateReport) -> None:
    """Write the gate's report on a stage; the newest one counts."""
    _run(
        journal,
        "put_gate_report",
        **_scope(window),
        stage=stage,
        answer=report.answer.value,
        planned=report.planned,
        evaluated=report.evaluated,
        failures=Json(list(report.failures)),
        document=Json(dict(report.document)),
    )


def gate_reports(journal: PgConnection, window: Window) -> dict[str, GateReport]:
    """Return the gate's reports by stage."""
    return {
        stage: GateReport(
            answer=GateAnswer(answer),
            planned=planned,
            evaluated=evaluated,
            failures=tuple(failures),
            document=document,
        )
        for stage, answer, planned, evaluated, failures, document in _run(journal, "gate_reports", **_scope(window))
    }


def _scope(window: Window) -> dict[str, Any]:
    return {"pipeline": window.pipeline, "number": window.number, "revision": window.revision}


def _insert_many(journal: PgConnection, statement: str, rows: Iterable[Sequence[Any]]) -> int:
    """Insert rows, a statement for so many, so that they are never all in memory. Returns how many were given."""
    remaining, given = iter(rows), 0
    with journal.cursor() as cursor:
        while some := list(islice(remaining, _ROWS_OF_A_STATEMENT)):
            execute_values(cursor, load_queries("window_results")[statement].rstrip(";"), some, page_size=len(some))
            given += len(some)
    return given


def _run(journal: PgConnection, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with journal.cursor() as cursor:
        cursor.execute(load_queries("window_results")[statement], values)
        return cursor.fetchall() if cursor.description else []
