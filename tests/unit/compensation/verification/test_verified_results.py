"""The digest after a repair equals the digest of a window in which everything was found whole."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compensation.verification.verified_results import verified_result
from makewhole.compute import rollup
from makewhole.gate.summary import HopSummary, PointEvidence
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.verdict import REPAIRABLE, Cause, Finding, Verdict
from tests.world.examples import examples

pytestmark = pytest.mark.unit

HOP = "a→b"
VERDICT_AFTER = {"repaired": "matched", "contained": "matched", "reversed": "matched", "erased": "erased"}
SCHEMA = {
    "key_hash": pl.String,
    "verdict": pl.String,
    "row_hash": pl.UInt64,
    "in_source": pl.Boolean,
    "target_copies": pl.Int64,
}


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA)


def result(rows: list[dict[str, Any]]) -> HopResult:
    judged = frame(rows)
    counts = rollup.counts(judged, len(rows), len(rows))
    point = PointEvidence(point="a", has_manifest=True, rows_read=len(rows))
    beside = judged.filter(~pl.col("in_source"))
    summary = HopSummary(
        hop=HOP,
        counts=counts,
        expected_rows=len(rows),
        source=point,
        target=point,
        duplicates_without_source=len(beside.filter(pl.col("verdict") == "duplicate")),
    )
    digest = rollup.digest_text(rollup.digest(judged))
    return HopResult(hop=HOP, counts=counts, digest=digest, files={"summary": summary.to_json_dict(), "verdicts": []})


def finding(row: dict[str, Any], outcome: str, hop: str = HOP) -> JudgedFinding:
    evidence = {"in_source": row["in_source"], "target_copies": row["target_copies"]}
    if row["row_hash"] is not None:
        evidence["row_hash"] = str(row["row_hash"])
    return JudgedFinding(
        finding=Finding(
            hop=hop,
            key="k",
            key_hash=row["key_hash"],
            verdict=Verdict(row["verdict"]),
            cause=Cause.NOT_IN_SOURCE,
            evidence=evidence,
        ),
        outcome=outcome,
    )


@st.composite
def judged_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for number in range(draw(st.integers(0, 12))):
        in_source = draw(st.booleans())
        words = (
            ["matched", "missing", "duplicate", "mismatched", "conflict", "vanished", "pending"]
            if in_source
            else ["unexpected", "duplicate"]
        )
        verdict = draw(st.sampled_from(words))
        rows.append(
            {
                "key_hash": f"{number:032x}",
                "verdict": verdict,
                "row_hash": draw(st.integers(0, 2**64 - 1)) if in_source else None,
                "in_source": in_source,
                "target_copies": draw(st.integers(2, 4)) if verdict == "duplicate" else 1,
            }
        )
    return rows


@settings(max_examples=examples(150), deadline=None)
@given(judged_rows(), st.data())
def test_what_was_repaired_counts_and_digests_as_if_it_had_been_whole(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    gaps = [row for row in rows if Verdict(row["verdict"]) in REPAIRABLE]
    outcomes = {
        row["key_hash"]: data.draw(
            st.sampled_from(["repaired", "contained", "reversed", "open", "refused"])
            if row["verdict"] not in ("missing", "vanished")
            else st.sampled_from(["repaired", "erased", "open", "refused"])
        )
        for row in gaps
    }
    whole = {key: VERDICT_AFTER[outcome] for key, outcome in outcomes.items() if outcome in VERDICT_AFTER}
    findings = [finding(row, outcomes[row["key_hash"]]) for row in gaps]

    after = verified_result(result(rows), [*findings, *(finding(row, "repaired", hop="b→c") for row in gaps)])

    expected = result(
        [
            row | {"verdict": whole[row["key_hash"]], "target_copies": 1} if row["key_hash"] in whole else row
            for row in rows
            if row["in_source"] or row["key_hash"] not in whole
        ]
    )
    assert after.digest == expected.digest
    before, then = vars(expected.counts).copy(), vars(after.counts).copy()
    for name in ("source_rows", "target_rows"):
        before.pop(name), then.pop(name)
    assert then == before
    summary, wanted = after.files["summary"], expected.files["summary"]
    assert summary["expected_rows"] == wanted["expected_rows"]
    assert summary["duplicates_without_source"] == wanted["duplicates_without_source"]


def test_nothing_repaired_changes_nothing() -> None:
    rows = [{"key_hash": "0" * 32, "verdict": "missing", "row_hash": 1, "in_source": True, "target_copies": 0}]
    before = result(rows)

    after = verified_result(before, [finding(rows[0], "open")])

    assert (after.digest, after.counts) == (before.digest, before.counts)


@pytest.mark.parametrize("in_source", [True, False])
def test_a_key_that_verify_found_twice_counts_until_it_is_whole(in_source: bool) -> None:
    matched = {"key_hash": "a", "verdict": "matched", "row_hash": 1, "in_source": True, "target_copies": 1}
    other = {"key_hash": "b", "verdict": "matched", "row_hash": 2, "in_source": True, "target_copies": 1}
    doubled = {"key_hash": "a", "verdict": "duplicate", "row_hash": 1, "in_source": in_source, "target_copies": 3}
    before = result([matched, other] if in_source else [other])
    judged = finding(doubled, "open")
    evidence = {**judged.finding.evidence, "caused_by": "p"}
    judged = replace(judged, finding=replace(judged.finding, cause=Cause.REDELIVERED, evidence=evidence))

    after = verified_result(before, [judged])

    expected = result([doubled, other])
    assert (after.digest, after.counts.duplicate, after.counts.extra_copies) == (expected.digest, 1, 2)
    assert after.counts.matched == 1
    assert after.files["summary"]["duplicates_without_source"] == expected.files["summary"]["duplicates_without_source"]
    assert after.files["summary"]["expected_rows"] == 2
    assert verified_result(before, [replace(judged, outcome="repaired")]).digest == before.digest


@pytest.mark.parametrize("in_source", [True, False])
@pytest.mark.parametrize("verdict", ["mismatched", "missing", "unexpected"])
def test_a_key_that_a_repair_for_another_hop_broke_counts_until_it_is_whole(verdict: str, in_source: bool) -> None:
    matched = {"key_hash": "a", "verdict": "matched", "row_hash": 1, "in_source": True, "target_copies": 1}
    other = {"key_hash": "b", "verdict": "matched", "row_hash": 2, "in_source": True, "target_copies": 1}
    broken = {"key_hash": "a", "verdict": verdict, "row_hash": 1, "in_source": in_source, "target_copies": 1}
    before = result([matched, other] if in_source else [other])
    judged = finding(broken, "open")
    evidence = {**judged.finding.evidence, "caused_by": "p"}
    judged = replace(judged, finding=replace(judged.finding, cause=Cause.CHANGED_BY_REPAIR, evidence=evidence))

    after = verified_result(before, [judged])

    expected = result([broken, other])
    assert (after.digest, getattr(after.counts, verdict), after.counts.matched) == (expected.digest, 1, 1)
    summary = after.files["summary"]
    assert summary["expected_rows"] == 2
    assert summary["differing_without_source"] == int(verdict != "unexpected" and not in_source)
    assert summary["unexpected_with_source"] == int(verdict == "unexpected" and in_source)
    assert verified_result(before, [replace(judged, outcome="repaired")]).digest == before.digest
