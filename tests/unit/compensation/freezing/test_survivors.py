"""The row that stays is the one that agrees with the source; what is not known is never guessed."""

from collections.abc import Mapping
from typing import Any

import pytest

from makewhole.compensation.freezing.survivors import require_rows_as_judged, require_values_as_judged, survivor_first
from makewhole.compensation.sources.source_values import SourceValues
from makewhole.compensation.sources.sources import SourceRecord, Sources
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.signing.mask import Mask
from makewhole.tables.rows import TableRow, ValuedRow

pytestmark = pytest.mark.unit

REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.QUARANTINE, mismatched=Remedy.REPORT)


class Records:
    """Records by position; a partition of 9 cannot be read."""

    def __init__(self, **values: bytes | None) -> None:
        self._values = {int(name.removeprefix("at_")): value for name, value in values.items()}

    def records(self, point: str, positions: Any) -> list[SourceRecord]:
        assert point == "orders"
        if any(partition == 9 for partition, _ in positions):
            raise CorruptionError("the archive is damaged")
        return [
            SourceRecord(
                partition=partition, offset=at, key=b"K", value=self._values[at], headers=(), timestamp_ms=None
            )
            for partition, at in positions
            if at in self._values
        ]

    def removed(self, point: str) -> str | None:
        return None

    def partition_count(self, point: str) -> int:
        raise AssertionError(point)

    def known_keys(self, point: str) -> None:
        raise AssertionError(point)


def values_of(evidence: Mapping[str, Any], records: Records, semantics: Semantics = Semantics.EVENT) -> Any:
    """Return the source's values, or the reason why they are not known."""
    points: dict[str, Point] = {
        "orders": TopicPoint(name="orders", connection="kafka", topic="orders", key=("kafka.key",)),
        "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="store", key=("id",)),
    }
    hop = Hop(source="orders", target="store", remedies=REMEDIES, semantics=semantics, where="region = 'US'")
    pipeline = Pipeline(name="p", points=points, hops=(hop,), compare={"amount": "int"})
    finding = Finding(
        hop=hop.name,
        key="K",
        key_hash="0" * 32,
        verdict=Verdict.DUPLICATE,
        cause=Cause.WRITTEN_BEFORE_COMMITTED,
        evidence=evidence,
    )
    with Sources(pipeline, records, {}) as sources:
        values = SourceValues(sources)
        values.load([finding])
        try:
            return values.of(finding)
        except RefusedError as error:
            return str(error)


def outside(offset: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"place": f"{partition}:{offset}", "partition": partition, "offset": offset, **more}


def record(amount: int, region: str = "US") -> bytes:
    return f'{{"amount": {amount}, "region": "{region}"}}'.encode()


def test_of_an_event_the_first_record_that_passes_the_filter_counts() -> None:
    records = Records(at_1=record(1, "EU"), at_2=record(2), at_3=record(3))
    assert values_of({"source_elsewhere": [outside(1), outside(2), outside(3)]}, records) == {"amount": "2"}


def test_an_earlier_record_counts_before_the_one_of_the_window_unless_they_agree() -> None:
    of_window = {"values": {"amount": "3"}, "row_hash": "30"}
    records = Records(at_2=record(2))
    assert values_of({**of_window, "source_elsewhere": [outside(2, row_hash="20")]}, records) == {"amount": "2"}
    assert values_of({**of_window, "source_elsewhere": [outside(7, row_hash="30")]}, records) == {"amount": "3"}
    assert values_of({**of_window, "source_elsewhere": [outside(7, later=True)]}, records) == {"amount": "3"}


def test_under_upsert_the_latest_record_counts_and_a_tombstone_is_a_deletion() -> None:
    records = Records(at_1=record(1), at_2=record(2), at_3=None)
    both = [outside(1), outside(2)]
    assert values_of({"source_elsewhere": both}, records, Semantics.UPSERT) == {"amount": "2"}
    assert values_of({"source_elsewhere": [*both, outside(3)]}, records, Semantics.UPSERT) is None
    latest = {"latest": {"tombstone": True}, "values": {"amount": None}}
    assert values_of(latest, records, Semantics.UPSERT) is None


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        ({}, "not known: the evidence names no record of this key in the source; run the window again"),
        (
            {"source_elsewhere": [outside(8)]},
            "not known: the source's record of this key can be read nowhere any more; repair it by hand",
        ),
        (
            {"source_elsewhere": [outside(1, partition=9)]},
            "not known: the source's record of this key can be read nowhere any more; repair it by hand",
        ),
        (
            {"source_elsewhere": [outside(1, row_hash="1"), outside(2, partition=1, row_hash="2")]},
            "not known: nothing shows which version of this key is the source's latest; repair it by hand",
        ),
        (
            {"order_unknown": True, "values": {"amount": "1"}},
            "not known: nothing shows which version of this key is the source's latest; repair it by hand",
        ),
    ],
)
def test_what_is_not_known_of_the_source_is_said(evidence: Mapping[str, Any], reason: str) -> None:
    assert values_of(evidence, Records(at_1=record(1)), Semantics.UPSERT) == reason


def row(number: int, amount: str | None) -> ValuedRow:
    place = f"(0,{number})"
    return ValuedRow(row=TableRow(table_oid=1, ctid=place, text=str(amount)), place=place, values={"amount": amount})


def test_the_first_row_that_agrees_stays_and_without_one_there_is_no_survivor() -> None:
    rows = [row(1, "9"), row(2, "5"), row(3, "5")]
    ordered = survivor_first(rows, {"amount": "5"})
    assert ordered is not None
    assert [kept.place for kept in ordered] == ["(0,2)", "(0,1)", "(0,3)"]
    assert survivor_first(rows, {"amount": "7"}) is None
    assert survivor_first(rows, {"amount": None}) is None
    assert survivor_first(rows, {}) == rows  # nothing is compared


@pytest.mark.parametrize(
    ("places", "copies", "is_stale"),
    [(["(0,1)", "(0,2)"], 2, False), (["(0,1)"], 2, False), (["(0,1)", "(0,3)"], 2, True), (["(0,1)"], 1, True)],
)
def test_rows_that_came_went_or_were_written_again_are_stale(places: list[str], copies: int, is_stale: bool) -> None:
    evidence = {"target": [{"place": place} for place in places], "target_copies": copies}
    finding = Finding(
        hop="a→b", key="K", key_hash="0", verdict=Verdict.DUPLICATE, cause=Cause.NOT_IN_SOURCE, evidence=evidence
    )
    rows = [row(1, "5"), row(2, "5")]
    if is_stale:
        with pytest.raises(RefusedError, match="stale: the rows of this key changed since it was judged"):
            require_rows_as_judged(rows, finding)
    else:
        require_rows_as_judged(rows, finding)


JUDGED: dict[str, dict[str, str | None]] = {
    "amount": {"source": "5", "target": "7"},
    "note": {"source": "x", "target": None},
}


def mismatched(**evidence: Any) -> Finding:
    return Finding(
        hop="a→b", key="K", key_hash="0a", verdict=Verdict.MISMATCHED, cause=Cause.VALUE_DIFFERS, evidence=evidence
    )


def held(**values: str | None) -> ValuedRow:
    row = TableRow(table_oid=1, ctid="(0,1)", text="", image="", place="a:0")
    return ValuedRow(row=row, place="1.(0,1)", values={"amount": "7", "note": None, "kind": "k", **values})


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_row_is_mended_while_it_holds_what_was_judged(is_masked: bool) -> None:
    mask = Mask(columns=frozenset({"amount"}), key=bytes(32)) if is_masked else None
    judged = {
        name: {side: text if mask is None else mask.text(name, text) for side, text in sides.items()}
        for name, sides in JUDGED.items()
    }
    finding = mismatched(columns=judged)
    require_values_as_judged(held(), ["amount", "note"], finding, mask)
    require_values_as_judged(held(kind="another"), ["amount"], finding, mask)
    for changed in (held(amount="8"), held(amount=None), held(note="y"), held(amount="5")):
        with pytest.raises(RefusedError, match="stale: the rows of this key changed since it was judged"):
            require_values_as_judged(changed, ["amount", "note"], finding, mask)


def test_a_column_that_differs_since_the_row_was_judged_is_not_written() -> None:
    with pytest.raises(RefusedError, match="stale: the rows of this key changed since it was judged"):
        require_values_as_judged(held(kind="newer"), ["amount", "kind"], mismatched(columns=JUDGED))


@pytest.mark.parametrize("evidence", [{}, {"columns": {}}, {"columns": JUDGED, "group": {}}])
def test_evidence_that_shows_no_values_of_the_row_holds_it_to_nothing(evidence: dict[str, Any]) -> None:
    require_values_as_judged(held(amount="8"), ["amount", "kind"], mismatched(**evidence))
