"""Check what is said of a row that is made of all records of its key, by its counts and its sums."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.frames import HASHES, IS_GONE
from makewhole.compute.judge.grouped.differences import evidence_of_groups
from makewhole.compute.judge.grouped.elements import Totals
from makewhole.compute.judge.grouped.judge_groups import GroupFacts, judge_groups
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.model.places.grouping import Grouping
from tests.unit.compute.judge.bucket_input import HOP, bucket, hashed
from tests.world.examples import examples

pytestmark = pytest.mark.unit

TOTALS = Totals.of(
    Grouping(identity="line", counts="lines", sums=("total",)), {"lines": "bigint", "total": "decimal(12,2)"}
)
BY_POSITION = Totals.of(Grouping(sums=("total",)), {"total": "decimal(12,2)"})
WHOLE = GroupFacts(is_whole=True)
Records = Sequence[tuple[str | None, str | None]]
"""(identity, amount) of the records of a key, in their order."""


def known(records: Records, *rows: tuple[str | None, str | None], key: str = "K", **more: Any) -> BucketInput:
    """Return a key with records, and rows of (count, sum)."""
    copies = [{"key": key, "offset": offset, "is_tombstone": False} for offset, _ in enumerate(records)]
    stored = [{"key": key, "offset": offset} for offset, _ in enumerate(rows)]
    made = bucket(copies, stored, target_is_topic=False, **more)
    names = [pl.Series(name, values, dtype=pl.String) for name, values in _columns(records, ("c:line", "c:total"))]
    held = [pl.Series(name, values, dtype=pl.String) for name, values in _columns(rows, ("c:lines", "c:total"))]
    return replace(made, source=made.source.with_columns(names), target=made.target.with_columns(held))


def _columns(rows: Sequence[tuple[Any, Any]], names: tuple[str, str]) -> list[tuple[str, list[Any]]]:
    return [(name, [row[at] for row in rows]) for at, name in enumerate(names)]


def said(bucket_: BucketInput, facts: GroupFacts = WHOLE, totals: Totals = TOTALS) -> tuple[str, str | None] | None:
    """Return the verdict on the one key, and the kernel's cause; None: it is not judged here."""
    rows = judge_groups(bucket_, totals, facts).select("verdict", "hint").rows()
    return rows[0] if rows else None


def keys(*names: str) -> pl.DataFrame:
    return hashed([{"key": name} for name in names], HASHES)


def elsewhere(*, is_later: bool) -> list[dict[str, Any]]:
    return [{"key": "K", "place": "0:90" if is_later else "1:0", "is_later": is_later}]


THREE: Records = (("1", "0.1"), ("2", "0.20"), ("3", "-7"))


@pytest.mark.parametrize(
    ("records", "rows", "right"),
    [
        (THREE, [("3", "-6.70")], ("matched", None)),
        ((*THREE, ("2", "0.2")), [("3", "-6.70")], ("matched", None)),
        (THREE, [], ("missing", None)),
        (THREE, [("3", "-6.70"), ("3", "-6.70")], ("duplicate", "several_rows")),
        ((), [("3", "-6.70")], ("unexpected", None)),
        (THREE, [("2", "-6.90")], ("mismatched", "record_not_counted")),
        (THREE, [("3", "-6.90")], ("mismatched", None)),
        (THREE, [("2", "-6.70")], ("mismatched", None)),
        (THREE, [("1", "0.1")], ("mismatched", None)),
        (THREE, [(None, "-6.70")], ("mismatched", None)),
        (THREE, [("3", None)], ("mismatched", None)),
        (THREE, [("3", "NaN")], ("mismatched", None)),
        ((*THREE, ("2", "0.2")), [("4", "-6.50")], ("mismatched", "resend_counted")),
        ((*THREE, ("2", "0.2"), ("2", "0.2")), [("5", "-6.30")], ("mismatched", "resend_counted")),
        ((*THREE, ("2", "0.2"), ("1", "0.1")), [("5", "-6.40")], ("mismatched", "resend_counted")),
        ((*THREE, ("2", "0.2")), [("5", "-6.30")], ("mismatched", None)),
        (THREE, [("4", "-6.50")], ("mismatched", None)),
        ((*THREE, ("2", "0.3")), [("3", "-6.70")], ("conflict", "source_contradicts_itself")),
        ((*THREE, ("4", None)), [("4", "-6.70")], ("undecidable", "no_amount")),
        ((*THREE, (None, "0")), [("4", "-6.70")], ("undecidable", "no_amount")),
        ((*THREE, ("4", "0.001")), [("4", "-6.70")], ("undecidable", "no_amount")),
        ((*THREE, ("4", "!many")), [("4", "-6.70")], ("undecidable", "no_amount")),
        ((*THREE, ("4", "9" * 40)), [("4", "-6.70")], ("undecidable", "no_amount")),
        ((("1", None),), [], ("missing", None)),
        ((("1", None),), [("1", "0"), ("1", "0")], ("duplicate", "several_rows")),
    ],
)
def test_a_row_is_held_to_all_records_of_its_key(
    records: Records, rows: list[tuple[str | None, str | None]], right: tuple[str, str | None]
) -> None:
    assert said(known(records, *rows)) == right


@pytest.mark.parametrize(
    ("more", "facts", "right"),
    [
        ({"source_elsewhere": elsewhere(is_later=False)}, WHOLE, ("undecidable", "key_not_whole")),
        ({"source_elsewhere": elsewhere(is_later=True)}, WHOLE, ("pending", "key_continues")),
        ({"source_elsewhere": elsewhere(is_later=True), "overdue": ["K"]}, WHOLE, ("undecidable", "key_continues")),
        (
            {"source_elsewhere": [*elsewhere(is_later=True), *elsewhere(is_later=False)]},
            WHOLE,
            ("undecidable", "key_not_whole"),
        ),
        ({}, GroupFacts(is_whole=True, opened=keys("K")), ("pending", "key_continues")),
        ({"overdue": ["K"]}, GroupFacts(is_whole=True, opened=keys("K")), ("undecidable", "key_continues")),
        ({}, GroupFacts(is_whole=False), ("undecidable", "key_not_whole")),
        ({}, GroupFacts(is_whole=True, unread=keys("K")), ("undecidable", "unreadable_record")),
        ({}, GroupFacts(is_whole=True, opened=keys("X"), unread=keys("X")), None),
    ],
)
@pytest.mark.parametrize("row", [("3", "-6.70"), ("2", "-6.90"), ("9", "9")])
def test_what_may_not_be_all_records_is_never_right_or_wrong(
    row: tuple[str, str], more: dict[str, Any], facts: GroupFacts, right: tuple[str, str] | None
) -> None:
    """Whether the numbers agree or not: but for the last situation, which is about other keys."""
    verdict = said(known(THREE, row, **more), facts)
    assert verdict == right or (right is None and verdict is not None and verdict[0] in ("matched", "mismatched"))


@pytest.mark.parametrize(
    ("more", "facts", "right"),
    [
        ({"source_elsewhere": elsewhere(is_later=False)}, WHOLE, "missing"),
        ({}, GroupFacts(is_whole=False), "missing"),
        ({}, GroupFacts(is_whole=True, unread=keys("K")), "missing"),
        ({"unsettled": ["K"]}, WHOLE, "pending"),
        ({"unsettled": ["K"], "overdue": ["K"]}, WHOLE, "missing"),
        ({"source_elsewhere": elsewhere(is_later=True)}, WHOLE, "pending"),
        ({"source_elsewhere": elsewhere(is_later=True), "overdue": ["K"]}, WHOLE, "undecidable"),
    ],
)
def test_a_row_that_is_not_there_is_missing_once_its_reader_was_there(
    more: dict[str, Any], facts: GroupFacts, right: str
) -> None:
    verdict = said(known(THREE, **more), facts)
    assert verdict is not None and verdict[0] == right


def test_a_reader_that_was_not_there_yet_may_be_right_and_is_not_wrong() -> None:
    assert said(known(THREE, ("2", "-6.90"), unsettled=["K"])) == ("pending", None)
    assert said(known(THREE, ("2", "-6.90"), unsettled=["K"], overdue=["K"])) == ("undecidable", "not_consumed")
    assert said(known(THREE, ("3", "-6.70"), unsettled=["K"])) == ("matched", None)


def test_a_row_whose_records_are_in_other_windows_is_judged_there() -> None:
    assert said(known((), ("3", "1"), source_elsewhere=elsewhere(is_later=False))) is None
    assert said(known((), ("3", "1"), ("3", "1"), source_elsewhere=elsewhere(is_later=False))) == (
        "duplicate",
        "several_rows",
    )
    assert said(known((), ("3", "1")), GroupFacts(is_whole=False)) == ("undecidable", "key_not_whole")


def test_a_key_that_was_handed_over_and_has_no_records_any_more_is_not_held_to_nothing() -> None:
    assert said(known((), ("0", "0"), handed_over=["K"])) == ("undecidable", "key_not_whole")
    assert said(known((), handed_over=["K"])) == ("missing", None)


def test_records_without_an_identity_of_their_own_count_each() -> None:
    twice: Records = (("1", "1"), ("1", "1"))
    assert said(known(twice, (None, "2.00")), totals=BY_POSITION) == ("matched", None)
    assert said(known(twice, (None, "1.00")), totals=BY_POSITION) == ("mismatched", "record_not_counted")


def test_records_that_are_aborted_or_that_the_filter_excludes_add_nothing() -> None:
    made = known(THREE, ("2", "0.30"))
    aborted = pl.Series("is_aborted", [False, False, True])
    assert said(replace(made, source=made.source.with_columns(aborted))) == ("matched", None)
    excluded = pl.Series("excluded_by", [[], [], [HOP]], dtype=pl.List(pl.String))
    assert said(replace(made, source=made.source.with_columns(excluded))) == ("matched", None)
    counted = known(THREE, ("3", "-6.70"))
    assert said(replace(counted, source=counted.source.with_columns(aborted))) == ("mismatched", "read_uncommitted")
    assert said(replace(counted, source=counted.source.with_columns(excluded))) == ("mismatched", None)


def test_a_record_of_which_the_filter_says_nothing_adds_nothing_that_is_known() -> None:
    """Whether such a record counts is not known, whatever the row has."""
    made = known(THREE, ("3", "-6.70"))
    unknown = pl.Series("excluded_by", [[], None, []], dtype=pl.List(pl.String))
    assert said(replace(made, source=made.source.with_columns(unknown))) == ("undecidable", "no_amount")


def test_a_record_that_was_cut_off_leaves_its_key_undecidable() -> None:
    """Its producer may have sent it again, or not: whether it counts is not known."""
    made = known(THREE, ("3", "-6.70"))
    gone = made.source.with_columns(pl.Series(IS_GONE, [False, True, False]))
    assert said(replace(made, source=gone)) == ("undecidable", "key_not_whole")


def test_a_tombstone_adds_nothing_that_is_known() -> None:
    made = known(THREE, ("3", "-6.70"))
    erased = made.source.with_columns(pl.Series("is_tombstone", [False, True, False]))
    assert said(replace(made, source=erased)) == ("undecidable", "no_amount")


def test_evidence_shows_both_sums_and_the_records_that_it_may_be_about() -> None:
    made = known((("1", "5"), ("2", "5.0"), ("3", "1"), ("3", "1")), ("2", "6.00"))
    judged = judge_groups(made, TOTALS, WHOLE)
    (evidence,) = evidence_of_groups(made, TOTALS, judged).values()
    assert evidence == {
        "group": {
            "records": 3,
            "expected": {"lines": "3", "total": "11.00"},
            "found": {"lines": "2", "total": "6.00"},
            "sent_again": ["0:3"],
            "may_be": ["0:0", "0:1"],
        },
        "values": {"lines": "3", "total": "11.00"},
        "columns": {"lines": {"source": "3", "target": "2"}, "total": {"source": "11.00", "target": "6.00"}},
    }


AMOUNTS = st.decimals(-(10**24), 10**24, places=2, allow_nan=False) | st.sampled_from(
    [Decimal(sign * size).scaleb(-2) for sign in (1, -1) for size in (2**63 - 1, 2**63, 2**64, 1, 0)]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), AMOUNTS), min_size=1, max_size=12), st.data())
def test_sums_are_exact_and_one_cent_is_a_difference(lines: list[tuple[str, Decimal]], data: st.DataObject) -> None:
    """An identity has one amount; any of its records may come again, in any order."""
    amounts = dict(lines)
    records = [(line, format(amounts[line], "f")) for line, _ in lines]
    total, number = sum(amounts.values()), len(amounts)
    assert said(known(records, (str(number), format(total, "f")))) == ("matched", None)
    cent = data.draw(st.sampled_from([Decimal("0.01"), Decimal("-0.01")]))
    verdict = said(known(records, (str(number), format(total + cent, "f"))))
    assert verdict is not None and verdict[0] == "mismatched"
