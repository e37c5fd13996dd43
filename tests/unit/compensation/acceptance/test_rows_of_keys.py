"""Test what the rows of an accepted key show: that it was changed since it was judged, or since it was accepted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from makewhole.compensation.acceptance.rows_of_keys import KeyRows, tables_joined_to
from makewhole.lake.mask_key import ensure_mask_key
from makewhole.lake.storage import Storage
from makewhole.model.acceptance import AcceptedFinding
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.signing.mask import Mask

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def table(name: str, kind: PointKind) -> TablePoint:
    return TablePoint(name=name, kind=kind, connection="db", table=name, key=("id",))


PIPELINE = Pipeline(
    name="p",
    points={
        "a": table("a", PointKind.LEDGER),
        "topic": TopicPoint(name="topic", connection="kafka", topic="t", key=("$.id",)),
        "store": table("store", PointKind.STORE),
        "customers": table("customers", PointKind.LEDGER),
        "mirror": table("mirror", PointKind.STORE),
    },
    hops=(
        Hop(source="topic", target="store", remedies=REPORT),
        Hop(source="customers", target="mirror", remedies=REPORT),
        Hop(source="a", target="topic", remedies=REPORT),
    ),
)
HOP = "topic→store"


def row(amount: str, version: int | None = None, place: str = "(0,1)", **more: Any) -> dict[str, Any]:
    return {"key": "k", "place": place, "version": version, "c:amount": amount, "excluded_by": [], **more}


def rows(*in_store: dict[str, Any]) -> KeyRows:
    return KeyRows(pipeline=PIPELINE, by_point={"a": {}, "store": {"k": [*in_store]} if in_store else {}})


def finding(verdict: Verdict, hop: str = HOP, **evidence: Any) -> Finding:
    return Finding(hop=hop, key="k", key_hash="0", verdict=verdict, cause=Cause.VALUE_DIFFERS, evidence=evidence)


def accepted_as(now: KeyRows) -> AcceptedFinding:
    return AcceptedFinding(
        hop=HOP,
        key="k",
        key_hash="0",
        verdict=Verdict.MISMATCHED,
        cause=Cause.VALUE_DIFFERS,
        fingerprint="f",
        held=now.held(MISMATCHED),
    )


MISMATCHED = finding(Verdict.MISMATCHED, columns={"amount": {"source": "1", "target": "2"}})


@pytest.mark.parametrize(
    ("judged", "now", "expected"),
    [
        (finding(Verdict.MISSING), rows(), None),
        (finding(Verdict.MISSING), rows(row("1")), "store has it by now"),
        (finding(Verdict.UNEXPECTED), rows(row("1")), None),
        (finding(Verdict.UNEXPECTED), rows(), "store has it no more"),
        (finding(Verdict.DUPLICATE), rows(), "store has it no more"),
        (finding(Verdict.CONFLICT), rows(), None),
        (MISMATCHED, rows(row("2")), None),
        (MISMATCHED, rows(row("3")), "store has other values of it than were judged"),
        (finding(Verdict.MISSING, "a→topic"), rows(row("1")), None),
    ],
)
def test_rows_that_are_not_as_they_were_judged_are_named(judged: Finding, now: KeyRows, expected: str | None) -> None:
    assert now.changed_since(judged) == expected


def test_what_is_held_changes_with_values_versions_filters_and_the_number_of_rows_and_not_with_places() -> None:
    held = accepted_as(rows(row("1"), row("2", place="(0,2)")))
    assert not rows(row("2", place="(9,9)"), row("1", place="(9,8)")).has_changed(held)
    others = [
        rows(row("1"), row("3")),
        rows(row("1")),
        rows(row("1"), row("2"), row("2")),
        rows(row("1", version=1), row("2")),
        rows(row("1", excluded_by=["topic→store"]), row("2")),
        rows(),
    ]
    assert all(other.has_changed(held) for other in others)


def test_what_the_file_reads_otherwise_since_is_no_change_of_the_rows() -> None:
    held = accepted_as(rows(row("1")))
    points = {**PIPELINE.points, "more": table("more", PointKind.STORE)}
    hops = (*PIPELINE.hops, Hop(source="topic", target="more", remedies=REPORT))
    compared = {"c:note": "x", **row("1")}
    for pipeline, in_store in (
        (replace(PIPELINE, points=points, hops=hops), row("1")),
        (replace(PIPELINE, compare={"amount": "int", "note": "string"}), compared),
    ):
        now = KeyRows(pipeline=pipeline, by_point={"a": {}, "store": {"k": [in_store]}, "more": {"k": [row("1")]}})
        assert not now.has_changed(held)
    changed = KeyRows(pipeline=replace(PIPELINE, points=points, hops=hops), by_point={"store": {"k": [row("2")]}})
    assert changed.has_changed(held)


def test_only_tables_that_share_the_keys_of_a_hop_are_looked_at() -> None:
    assert tables_joined_to(PIPELINE, HOP) == ["a", "store"]
    assert tables_joined_to(PIPELINE, "customers→mirror") == ["customers", "mirror"]


def test_what_is_kept_of_masked_rows_is_keyed_and_shows_changes_as_before() -> None:
    first, other = (Mask(columns=frozenset({"amount"}), key=bytes([number]) * 32) for number in (1, 2))
    as_read = rows(row("1"))
    accepted = accepted_as(replace(as_read, mask=first))

    assert len({accepted.held, as_read.held(MISMATCHED), replace(as_read, mask=other).held(MISMATCHED)}) == 3
    assert not replace(rows(row("1", place="(0,9)")), mask=first).has_changed(accepted)
    assert replace(rows(row("2")), mask=first).has_changed(accepted)


def test_rows_are_held_to_masked_evidence_by_its_own_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(root=str(tmp_path))
    monkeypatch.setenv("MAKEWHOLE_STORAGE", storage.root)
    mask = Mask(columns=frozenset({"amount"}), key=ensure_mask_key(storage))
    judged = finding(Verdict.MISMATCHED, **mask.evidence(dict(MISMATCHED.evidence)))

    assert rows(row("2")).changed_since(judged) is None
    assert rows(row("3")).changed_since(judged) == "store has other values of it than were judged"
