"""Test what is said of a key that several sources of one place have."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import ELSEWHERE, JUDGED
from makewhole.compute.judge.sources_together import (
    COPIES,
    compare_events,
    compare_versions,
    hold_to_others,
    later_versions,
    without_left,
)
from makewhole.compute.versions import MOMENTS

pytestmark = pytest.mark.unit

A, B, C = 11, 12, 13
DISAGREE = ("conflict", "sources_disagree")
UNKNOWN = ("undecidable", "order_unknown")
STALE = ("mismatched", "stale_version")


def judged(verdict: str, *, in_source: bool = True) -> pl.DataFrame:
    row: dict[str, Any] = dict.fromkeys(JUDGED) | {"key": "k", "key_hi": 1, "key_lo": 2, "key_hash": "00"}
    return pl.DataFrame([row | {"verdict": verdict, "in_source": in_source, "has_later": False}], schema=JUDGED)


def copies(source: str, *values: tuple[int | None, int | None] | dict[str, Any]) -> pl.DataFrame:
    rows = []
    for at, value in enumerate(values):
        named = value if isinstance(value, dict) else {"row_hash": value[0], "version": value[1]}
        usual = {"key_hi": 1, "key_lo": 2, "place": f"0:{at}", "is_before": False, "source": source}
        rows.append(dict.fromkeys(COPIES) | usual | named)
    return pl.DataFrame(rows, schema=COPIES)


def said(frame: pl.DataFrame) -> tuple[str, str | None]:
    return frame["verdict"][0], frame["hint"][0]


@pytest.mark.parametrize("verdict", ["matched", "missing", "mismatched", "duplicate"])
def test_an_event_with_another_value_elsewhere_is_a_conflict(verdict: str) -> None:
    compared = compare_events(judged(verdict), copies("a", (A, None)), copies("b", (B, None)), copies("t", (A, None)))
    assert said(compared.judged) == DISAGREE
    assert compared.others["source"].to_list() == ["b"]


@pytest.mark.parametrize(
    ("verdict", "other", "in_source"),
    [
        ("matched", (A, None), True),
        ("missing", (None, None), True),
        ("pending", (B, None), True),
        ("undecidable", (B, None), True),
        ("vanished", (B, None), True),
        ("unexpected", (B, None), False),
        ("duplicate", (B, None), False),
    ],
)
def test_an_event_with_the_same_value_or_no_claim_of_this_source_stays(
    verdict: str, other: tuple[int | None, None], *, in_source: bool
) -> None:
    own, target = copies("a", (A, None)), copies("t", (B, None))
    compared = compare_events(judged(verdict, in_source=in_source), own, copies("b", other), target)
    assert said(compared.judged) == (verdict, None)
    assert compared.others.is_empty()


def test_an_event_whose_other_value_came_after_the_window_is_no_conflict_in_it() -> None:
    later = copies("b", {"row_hash": B, "is_later": True})
    compared = compare_events(judged("matched"), copies("a", (A, None)), later, copies("t", (A, None)))
    assert said(compared.judged) == ("matched", None)
    own = pl.concat([copies("a", (A, None)), copies("a", {"row_hash": C, "place": "0:9", "is_later": True})])
    compared = compare_events(judged("matched"), own, copies("b", (A, None)), copies("t", (A, None)))
    assert said(compared.judged) == ("matched", None)


_BEFORE, _LATER = {"is_before": True}, {"is_later": True}


@pytest.mark.parametrize(
    ("other", "held", "expected"),
    [
        ([{"row_hash": B, "version": 5, **_BEFORE}], (B, 5), ("matched", None)),
        ([{"row_hash": B, "version": 5, **_BEFORE}], (A, 6), STALE),
        ([{"row_hash": B, "version": 4, **_BEFORE}, {"row_hash": C, "version": 5, **_BEFORE}], (B, 4), STALE),
        (
            [{"row_hash": B, "version": 5, **_BEFORE}, {"row_hash": C, "version": 8, **_LATER}],
            (C, 8),
            ("matched", None),
        ),
        ([{"row_hash": B, "version": 5, **_BEFORE}, {"row_hash": C, "version": 8, **_LATER}], (A, 6), STALE),
        ([{"row_hash": B, "version": 5}], (A, 6), ("matched", None)),
        ([{"row_hash": None, "version": 5, **_BEFORE}], (A, 6), UNKNOWN),
        (
            [{"row_hash": B, "version": 5, **_BEFORE}, {"version": 6, "is_outside": True, **_BEFORE}],
            (A, 6),
            ("matched", None),
        ),
    ],
    ids=[
        "the latest",
        "our own",
        "an older one",
        "a later one",
        "neither",
        "judged there",
        "not known",
        "left there, too",
    ],
)
def test_a_row_of_a_key_that_its_source_left_is_held_to_what_the_others_had(
    other: list[dict[str, Any]], held: tuple[int, int], expected: tuple[str, str | None]
) -> None:
    keys = judged("unexpected")
    compared = hold_to_others(keys, keys, copies("b", *other), copies("t", held))
    assert said(compared.judged) == expected
    assert compared.judged["has_later"][0] is (expected == STALE)
    assert compared.later.is_empty() is (expected != STALE)


def of_before(own: Any, other: Any, held: Any, verdict: str = "mismatched", *, is_upsert: bool = True) -> str | None:
    """Return what is said of a key that no source has in the window; None: nothing."""
    frames = (judged(verdict, in_source=False), copies("a", own), copies("b", other), copies("t", *held))
    apart = (compare_versions if is_upsert else compare_events)(*frames).judged
    assert len(apart) < 2
    return None if apart.is_empty() else str(apart["verdict"][0])


def test_a_row_that_differs_from_what_all_sources_had_is_said_on_every_hop() -> None:
    assert of_before((A, None), (A, None), [(C, None)], is_upsert=False) == "mismatched"
    assert of_before((A, None), (B, None), [(C, None)], is_upsert=False) == "conflict"
    assert of_before((A, None), (B, None), [(B, None)], is_upsert=False) is None
    assert of_before((A, None), (None, None), [(C, None)], is_upsert=False) is None, "its value is not known"


def test_of_versions_the_source_that_is_ahead_says_what_a_row_should_be() -> None:
    assert of_before((A, 2), (B, 1), [(B, 1)]) == "mismatched", "ours is ahead"
    assert of_before((A, 1), (B, 2), [(C, 0)]) is None, "the other one says it"
    assert of_before((A, 1), (B, 2), [], "missing") == "missing", "which has no row to judge"
    assert of_before((A, 1), {"is_tombstone": True, "version": 2}, [], "missing") is None
    assert of_before((A, 1), (None, 2), [], "missing") is None
    assert of_before((A, 1), (A, 1), [(C, 0)]) == "mismatched"
    assert of_before((A, 1), (B, 1), [(C, 0)]) == "undecidable"
    assert of_before((A, 1), (B, 1), [(B, 1)]) is None


def versions(
    verdict: str, own: Sequence[Any], others: Sequence[Any], held: Sequence[Any]
) -> tuple[tuple[str, str | None], bool]:
    frame = compare_versions(judged(verdict), copies("a", *own), copies("b", *others), copies("t", *held)).judged
    return said(frame), frame["has_later"][0]


def before(value: int, version: int) -> dict[str, Any]:
    return {"row_hash": value, "version": version, "is_before": True}


def test_a_later_version_of_another_source_in_the_window_is_judged_on_its_hop() -> None:
    assert versions("matched", [(A, 1)], [(B, 2)], [(A, 1)]) == (("matched", None), True)


def test_the_later_version_of_another_source_is_named_and_no_other() -> None:
    frames = judged("mismatched"), copies("a", (A, 3)), copies("b", (B, 2), (C, 4)), copies("t", (A, 1))
    later = compare_versions(*frames).later
    assert later.select("row_hash", "version", "source").rows() == [(C, 4, "b")]
    assert compare_versions(judged("matched"), copies("a", (A, 5)), *frames[2:]).later.is_empty()


def test_a_target_that_was_set_back_to_an_older_version_is_stale() -> None:
    assert versions("matched", [(A, 1)], [before(B, 2)], [(A, 1)]) == (STALE, True)
    assert versions("matched", [(A, 1)], [before(B, 2)], [(B, 2)]) == (("matched", None), True)
    assert versions("missing", [(A, 1)], [before(B, 2)], []) == (("missing", None), True)


def test_an_older_version_of_another_source_says_nothing() -> None:
    assert versions("mismatched", [(A, 5)], [before(B, 2)], [(B, 2)]) == (("mismatched", None), False)


@pytest.mark.parametrize("other", [(B, 1), (B, None)], ids=["equal number", "no number"])
def test_versions_that_nothing_orders_are_not_known(other: tuple[int, int | None]) -> None:
    own = (A, other[1])
    assert versions("matched", [own], [other], [own])[0] == UNKNOWN
    assert versions("mismatched", [own], [other], [other])[0] == UNKNOWN
    assert versions("matched", [own], [(A, other[1])], [own])[0] == ("matched", None)


def test_a_deletion_and_a_value_without_numbers_are_not_known() -> None:
    gone = {"row_hash": None, "is_tombstone": True}
    assert versions("missing", [(A, None)], [gone], [])[0] == UNKNOWN
    assert versions("missing", [gone], [gone], [])[0] == ("missing", None)


def test_only_the_last_record_of_a_partition_counts_without_numbers() -> None:
    assert versions("matched", [(A, None)], [(B, None), (A, None)], [(A, None)])[0] == ("matched", None)


def test_later_versions_are_those_of_a_higher_number() -> None:
    later = later_versions(copies("a", (A, 1), (A, 3)), copies("b", (B, 2), (C, 4), (C, None)))
    assert later.schema == pl.Schema(ELSEWHERE)
    assert later.select("version", "row_hash", "is_later").rows() == [(4, C, True)]


def outside(value: int, version: int | None, **more: Any) -> dict[str, Any]:
    return {"row_hash": value, "version": version, "is_outside": True, **more}


def test_a_source_that_a_key_left_says_nothing_of_it() -> None:
    """Count what passes since then, and not what passed before."""
    assert without_left(copies("b", (A, 1), outside(B, 2))).is_empty()
    assert without_left(copies("b", (A, None), outside(B, None))).is_empty()
    back = without_left(copies("b", (A, 1), outside(B, 2), (C, 3)))
    assert back["row_hash"].to_list() == [A, C]
    of_two = pl.concat([copies("b", (A, 1), outside(B, 2)), copies("c", (C, 1))])
    assert without_left(of_two)["source"].to_list() == ["c"]


def test_a_key_that_left_a_source_is_ordered_with_the_others_by_numbers_alone() -> None:
    assert versions("matched", [(A, None), outside(B, None)], [(C, None)], [(C, None)])[0] == ("matched", None)
    assert versions("matched", [(A, 1), outside(A, 2)], [before(C, 3)], [(A, 1)]) == (STALE, True)
    assert versions("matched", [(A, 1), outside(A, 4)], [before(C, 3)], [(C, 3)]) == (("matched", None), False)


def test_versions_of_two_kinds_and_those_before_a_deletion_order_nothing() -> None:
    moment = {"row_hash": B, "version": MOMENTS + 1}
    assert versions("matched", [(A, 5)], [moment], [(A, 5)])[0] == UNKNOWN
    assert later_versions(copies("a", (A, 5)), copies("b", moment)).is_empty()
    gone = {"row_hash": None, "is_tombstone": True}
    later = later_versions(copies("a", (A, 5), gone, (C, 1)), copies("b", (B, 3)))
    assert later["row_hash"].to_list() == [B]
