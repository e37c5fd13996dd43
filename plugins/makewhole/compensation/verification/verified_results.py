"""Compute the results of a window after its gaps were judged again: what is whole now counts as matched."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from makewhole.compute import rollup
from makewhole.gate.summary import HopSummary
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.verdict import DIFFERING, Cause, HopCounts, Verdict
from makewhole.window.masks import row_hash_of

ERASED = "erased"
WHOLE = ("repaired", "contained", "reversed", ERASED)
"""The outcomes of findings that need no further repair."""

CAUSED_BY = "caused_by"
"""The field of a finding's evidence that names the plan which caused it: verify found it, not reconcile."""

_OF_VERIFY = (Cause.REDELIVERED, Cause.CHANGED_BY_REPAIR)
_LINES = {"key_hash": pl.String, "verdict": pl.String, "row_hash": pl.UInt64}


def is_found_by_verify(item: JudgedFinding) -> bool:
    """Return whether verify found a finding: no result of reconcile counts it."""
    # The cause says no to nearly all of them, and their evidence need not be read.
    return item.finding.cause in _OF_VERIFY and CAUSED_BY in item.finding.evidence


def verified_result(result: HopResult, findings: Sequence[JudgedFinding]) -> HopResult:
    """Return the result of a hop with the findings that are whole moved to `matched`, or those of erased keys to
    `erased`, and with those that verify found and that are not: counts, digest, summary."""
    of_hop = [item for item in findings if item.finding.hop == result.hop]
    return _with_new(
        _with_whole(result, [item for item in of_hop if item.outcome in WHOLE and not is_found_by_verify(item)]),
        [item for item in of_hop if item.outcome not in WHOLE and is_found_by_verify(item)],
    )


def _with_new(result: HopResult, new: Sequence[JudgedFinding]) -> HopResult:
    """Add keys that repairs for other hops broke: those of the window's source were matched."""
    counts = vars(result.counts).copy()
    for item in new:
        counts[item.finding.verdict.value] += 1
        counts["extra_copies"] += _extra_copies(item)
        counts["matched"] -= _is_of_source(item)
    added = [item.finding.verdict for item in new if not _is_of_source(item)]
    summary = HopSummary.from_json_dict(result.files["summary"])
    after = HopCounts(**counts)
    summary = replace(
        summary,
        counts=after,
        expected_rows=None if summary.expected_rows is None else summary.expected_rows + len(added),
        duplicates_without_source=summary.duplicates_without_source + added.count(Verdict.DUPLICATE),
        differing_without_source=summary.differing_without_source + sum(verdict in DIFFERING for verdict in added),
        unexpected_with_source=summary.unexpected_with_source
        + sum(item.finding.verdict is Verdict.UNEXPECTED and _is_of_source(item) for item in new),
    )
    digest = rollup.digest_text(rollup.add_digests([int(result.digest, 16), -_digest_change(new)]))
    return HopResult(hop=result.hop, counts=after, digest=digest, files={"summary": summary.to_json_dict()})


def _with_whole(result: HopResult, whole: Sequence[JudgedFinding]) -> HopResult:
    counts = vars(result.counts).copy()
    for item in whole:
        counts[item.finding.verdict.value] -= 1
        counts["extra_copies"] -= _extra_copies(item)
        counts[_verdict_after(item).value] += _is_of_source(item)
    digest = rollup.add_digests([int(result.digest, 16), _digest_change(whole)])
    summary = HopSummary.from_json_dict(result.files["summary"])
    target_only = [item for item in whole if not _is_of_source(item)]
    after = HopCounts(**counts)
    summary = replace(
        summary,
        counts=after,
        expected_rows=None if summary.expected_rows is None else summary.expected_rows - len(target_only),
        duplicates_without_source=summary.duplicates_without_source
        - sum(item.finding.verdict is Verdict.DUPLICATE for item in target_only),
        differing_without_source=summary.differing_without_source
        - sum(item.finding.verdict in DIFFERING for item in target_only),
        unexpected_with_source=summary.unexpected_with_source
        - sum(item.finding.verdict is Verdict.UNEXPECTED and _is_of_source(item) for item in whole),
    )
    return HopResult(
        hop=result.hop,
        counts=after,
        digest=rollup.digest_text(digest),
        files={"summary": summary.to_json_dict()},
    )


def _verdict_after(item: JudgedFinding) -> Verdict:
    return Verdict.ERASED if item.outcome == ERASED else Verdict.MATCHED


def _is_of_source(item: JudgedFinding) -> bool:
    """Return whether the source has the key: then it becomes matched; a key of the target alone is removed."""
    return bool(item.finding.evidence.get("in_source", True))


def _extra_copies(item: JudgedFinding) -> int:
    is_repeated = item.finding.verdict is Verdict.DUPLICATE
    return int(item.finding.evidence["target_copies"]) - 1 if is_repeated else 0


def _digest_change(items: Sequence[JudgedFinding]) -> int:
    """Return the change of the digest when these findings become matched or erased, or are removed."""
    before = _lines((item, item.finding.verdict) for item in items)
    after = _lines((item, _verdict_after(item)) for item in items if _is_of_source(item))
    return rollup.digest(after) - rollup.digest(before)


def _lines(items: Iterable[tuple[JudgedFinding, Verdict]]) -> pl.DataFrame:
    """Return what the digest is over: the key, a verdict and the row hash of each finding."""
    rows = [(item.finding.key_hash, verdict.value, row_hash_of(item.finding)) for item, verdict in items]
    return pl.DataFrame(rows, schema=_LINES, orient="row")
