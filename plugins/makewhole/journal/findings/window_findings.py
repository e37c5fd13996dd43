"""Read and write the findings of a window."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.journal.findings.stored_evidence import StoredEvidence
from makewhole.journal.results import hop_results
from makewhole.journal.statements import insert_many, scope, storable
from makewhole.model.plan import copy_line
from makewhole.model.verdict import GAPS, Cause, Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import CopyLines, PgConnection, load_queries, record, records, single_value, statements_of

_run = statements_of("finding")

_NUL = "\\u0000"


@dataclass(frozen=True, kw_only=True)
class JudgedFinding:
    """A finding with its outcome: open, accepted, repaired, contained, reversed, erased, handed_over or refused.

    `acceptance`: the id of the person's word on one that is accepted.
    """

    finding: Finding
    outcome: str = "open"
    reason: str | None = None
    acceptance: str | None = None


def commit_findings(journal: PgConnection, window: Window, findings: Iterable[Finding]) -> int:
    """Replace the findings of this revision. Returns their number."""
    _run(journal, "delete_findings", **scope(window))
    lines = CopyLines(copy_line(row) for row in _finding_rows(window, findings))
    with journal.cursor() as cursor:
        cursor.copy_expert(load_queries("finding")["copy_findings_in"].rstrip(";"), lines)
    return lines.given


def add_findings(journal: PgConnection, window: Window, findings: Iterable[Finding]) -> None:
    """Write findings of this revision beside those that are there; what is there stays as it is."""
    insert_many(journal, "finding", "add_findings", _finding_rows(window, findings))


def _finding_rows(window: Window, findings: Iterable[Finding]) -> Iterator[Sequence[Any]]:
    return (
        (
            window.pipeline,
            window.number,
            window.revision,
            finding.hop,
            storable(finding.key),
            finding.key_hash,
            finding.verdict.value,
            finding.cause.value,
            _evidence_text(finding.evidence),
        )
        for finding in findings
    )


def _evidence_text(evidence: Mapping[str, Any]) -> str:
    text = json.dumps({**evidence})
    return json.dumps(_storable_in(evidence)) if _NUL in text else text


def _storable_in(value: Any) -> Any:
    """Escape NUL in every text inside evidence: a compared value of a record may be any text."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(name): _storable_in(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable_in(inner) for inner in value]
    return value


def findings(journal: PgConnection, window: Window) -> list[JudgedFinding]:
    """Return the findings of this revision with their outcomes, by hop, verdict and key."""
    return [judged_finding(row) for row in _run(journal, "findings", **scope(window))]


def judged_finding(row: Any) -> JudgedFinding:
    """Return the finding of a row of the journal, with its outcome; its evidence is text."""
    finding = Finding(
        hop=row.hop,
        key=row.key,
        key_hash=row.key_hash,
        verdict=Verdict(row.verdict),
        cause=Cause(row.cause),
        evidence=StoredEvidence(row.evidence),
    )
    return JudgedFinding(finding=finding, outcome=row.outcome, reason=row.reason, acceptance=row.acceptance)


def open_findings(journal: PgConnection, window: Window, verdicts: Sequence[str], most: int) -> list[Finding]:
    """Return the open findings of some verdicts, of each hop and verdict the first so many by key."""
    return records(Finding, _run(journal, "open_findings", **scope(window), verdicts=list(verdicts), most=most))


def open_disputes(journal: PgConnection, window: Window, key_hashes: Sequence[str]) -> list[tuple[int, Finding]]:
    """Return what the newest revisions of other windows left open or refused of some keys that says a value is wrong,
    or not known: each with the number of its window, in their order; of its evidence only `target_copies`."""
    if not key_hashes:
        return []
    given = {"pipeline": window.pipeline, "number": window.number, "hashes": list(key_hashes)}
    return _disputes(_run(journal, "open_disputes", **given))


def disputes_since_plan(
    journal: PgConnection, plan: str, key_hashes: Sequence[str]
) -> tuple[list[tuple[int, Finding]], frozenset[tuple[str, str]]]:
    """Return what `open_disputes` does of the window of a plan, as far as it was found since that was frozen; and hop
    and key hash of the findings of all windows that are accepted now."""
    if not key_hashes:
        return [], frozenset()
    rows = _run(journal, "disputes_since_plan", plan=plan, hashes=list(key_hashes))
    disputing = (row for row in rows if row.verdict is not None)
    return _disputes(disputing), frozenset((row.hop, row.key_hash) for row in rows if row.verdict is None)


def _disputes(rows: Iterable[Any]) -> list[tuple[int, Finding]]:
    return [(row.number, record(Finding, row, evidence={"target_copies": row.copies})) for row in rows]


def count_open(journal: PgConnection, window: Window) -> dict[tuple[str, str], int]:
    """Count what is open in this revision, by hop and verdict. Keys that were counted, and of which the journal kept no
    finding because there are too many, are open."""
    counted = hop_results.results(journal, window)
    left = {
        (hop, verdict.value): getattr(result.counts, verdict.value)
        for hop, result in counted.items()
        for verdict in GAPS
    }
    for row in _run(journal, "count_findings", **scope(window)):
        left[row.hop, row.verdict] = max(0, left.get((row.hop, row.verdict), 0) - row.kept) + row.open
    return left


def count_left_out(journal: PgConnection, window: Window) -> dict[tuple[str, Verdict], int]:
    """Count the findings that reconcile counted and the journal did not take, because there are too many, by hop and
    verdict; those of which it has all are not in it. The files of the results have them."""
    kept = {(row.hop, row.verdict): row.kept for row in _run(journal, "count_findings", **scope(window))}
    beyond = {
        (hop, verdict): getattr(result.counts, verdict.value) - kept.get((hop, verdict.value), 0)
        for hop, result in hop_results.results(journal, window).items()
        for verdict in Verdict
        if verdict.is_finding
    }
    return {kind: keys for kind, keys in beyond.items() if keys > 0}


def count_outcomes(journal: PgConnection, window: Window) -> dict[tuple[str, str], int]:
    """Count the findings of this revision by verdict and outcome."""
    rows = _run(journal, "count_outcomes", **scope(window))
    return {(verdict, outcome): count for verdict, outcome, count in rows}


def count_refused_by(journal: PgConnection, window: Window, verdicts: Iterable[Verdict], words: str) -> int:
    """Count the findings of some verdicts whose actions were refused with these words in the reason."""
    wanted = {"verdicts": [verdict.value for verdict in verdicts], "words": words}
    return int(single_value(_run(journal, "count_refused_by", **scope(window), **wanted)))


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
    _run(journal, "set_outcomes", **scope(window), **columns)


def _compared(evidence: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(evidence, StoredEvidence):  # as the journal has it
        return {}
    return {name: evidence[name] for name in ("compared",) if name in evidence}
