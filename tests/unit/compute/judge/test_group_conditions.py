"""Check each condition under which a row made of many records is judged: alone, and which of several counts first."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from makewhole.compute.judge.grouped.differences import evidence_of_groups
from makewhole.compute.judge.grouped.elements import Totals
from makewhole.compute.judge.grouped.judge_groups import GroupFacts, judge_groups
from makewhole.model.errors import CorruptionError
from makewhole.model.places.grouping import Grouping
from tests.unit.compute.judge.bucket_input import HOP
from tests.unit.compute.judge.test_grouped import (
    BY_POSITION,
    THREE,
    TOTALS,
    WHOLE,
    Records,
    elsewhere,
    keys,
    known,
    said,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ({}, GroupFacts(is_whole=False)),
        ({}, GroupFacts(is_whole=True, opened=keys("K"), unread=keys("K"))),
        ({"unsettled": ["K"]}, WHOLE),
        ({"source_elsewhere": elsewhere(is_later=True)}, WHOLE),
        ({"source_elsewhere": elsewhere(is_later=False), "overdue": ["K"]}, WHOLE),
    ],
)
def test_several_rows_are_known_whatever_is_not_known_of_the_records(more: dict[str, Any], facts: GroupFacts) -> None:
    assert said(known(THREE, ("3", "-6.70"), ("3", "-6.70"), **more), facts) == ("duplicate", "several_rows")


@pytest.mark.parametrize(
    ("more", "facts", "right"),
    [
        ({}, GroupFacts(is_whole=True, opened=keys("K")), ("pending", "key_continues")),
        ({"overdue": ["K"]}, GroupFacts(is_whole=True, opened=keys("K")), ("undecidable", "key_continues")),
        ({"source_elsewhere": elsewhere(is_later=True)}, GroupFacts(is_whole=False), ("pending", "key_continues")),
        (
            {"source_elsewhere": elsewhere(is_later=True), "overdue": ["K"]},
            GroupFacts(is_whole=False, unread=keys("K")),
            ("undecidable", "key_continues"),
        ),
        ({"source_elsewhere": [{"key": "K", "place": None, "is_later": None}]}, WHOLE, ("missing", None)),
        (
            {"source_elsewhere": [*elsewhere(is_later=True), *elsewhere(is_later=False)]},
            WHOLE,
            ("pending", "key_continues"),
        ),
        ({"unsettled": ["K"]}, WHOLE, ("pending", None)),
        ({"unsettled": ["K"], "source_elsewhere": elsewhere(is_later=False)}, WHOLE, ("pending", None)),
    ],
)
def test_why_it_is_not_known_whether_a_row_is_missing(
    more: dict[str, Any], facts: GroupFacts, right: tuple[str, str | None]
) -> None:
    """The row of a key that continues may be made with the last record, whatever else is not known of the others."""
    assert said(known(THREE, **more), facts) == right


SUMS = Totals.of(Grouping(identity="line", sums=("total",)), {"total": "decimal(12,2)"})
FLAWED: Records = (*THREE, ("4", None))
TORN: Records = (*THREE, ("2", "0.3"))
LATER, EARLIER = elsewhere(is_later=True), elsewhere(is_later=False)
UNKNOWN = [{"key": "K", "place": None, "is_later": None}]
NO_AMOUNT, NOT_WHOLE = ("undecidable", "no_amount"), ("undecidable", "key_not_whole")


@pytest.mark.parametrize(
    ("records", "more", "facts", "right"),
    [
        (FLAWED, {"source_elsewhere": EARLIER}, WHOLE, NOT_WHOLE),
        (FLAWED, {"source_elsewhere": LATER}, WHOLE, NO_AMOUNT),
        (FLAWED, {}, GroupFacts(is_whole=True, unread=keys("K")), NO_AMOUNT),
        (FLAWED, {"unsettled": ["K"]}, WHOLE, NO_AMOUNT),
        (
            THREE,
            {},
            GroupFacts(is_whole=True, unread=keys("K"), opened=keys("K")),
            ("undecidable", "unreadable_record"),
        ),
        (THREE, {"unsettled": ["K"]}, GroupFacts(is_whole=False), NOT_WHOLE),
        (TORN, {"source_elsewhere": LATER}, WHOLE, ("conflict", "source_contradicts_itself")),
        (TORN, {"unsettled": ["K"]}, WHOLE, ("conflict", "source_contradicts_itself")),
        (TORN, {"source_elsewhere": EARLIER}, WHOLE, NOT_WHOLE),
        ((*THREE, ("2", None)), {}, WHOLE, NO_AMOUNT),
        ((("2", None), *THREE), {}, WHOLE, NO_AMOUNT),
        (THREE, {"source_elsewhere": UNKNOWN}, WHOLE, NOT_WHOLE),
        (THREE, {"unsettled": ["K"], "source_elsewhere": LATER}, WHOLE, ("pending", "key_continues")),
        (THREE, {"overdue": ["K"]}, WHOLE, ("matched", None)),
        (THREE, {"handed_over": ["K", "K"]}, WHOLE, ("matched", None)),
    ],
)
def test_of_several_reasons_the_one_that_lasts_longest_is_said(
    records: Records, more: dict[str, Any], facts: GroupFacts, right: tuple[str, str | None]
) -> None:
    made = known(records, ("3", "-6.70"), **more)
    assert judge_groups(made, TOTALS, facts).select("verdict", "hint").rows() == [right]


def test_what_two_files_hold_of_one_place_is_one_record_and_one_row() -> None:
    made = known(THREE, ("3", "-6.70"))
    twice = replace(made, source=pl.concat([made.source] * 2), target=pl.concat([made.target] * 2))
    (row,) = judge_groups(twice, BY_POSITION, WHOLE).select("verdict", "source_copies", "target_copies").rows()
    assert row == ("matched", 3, 1)
    counted_again = known(THREE, ("4", "-6.50"))
    twice = replace(counted_again, source=pl.concat([counted_again.source] * 2))
    assert said(twice) == ("mismatched", None)


def test_a_key_that_two_windows_handed_over_is_one() -> None:
    assert len(judge_groups(known((), handed_over=["K", "K"]), TOTALS, WHOLE)) == 1


def test_the_time_of_a_key_is_that_of_its_last_record_else_of_its_row() -> None:
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 3, 2)]
    made = known(THREE, ("3", "-6.70"))
    dated = pl.Series("time", times, dtype=pl.Datetime("us", "UTC"))
    placed = replace(made, source=made.source.with_columns(dated), target=made.target.with_columns(dated[:1]))
    assert judge_groups(placed, TOTALS, WHOLE)["time"].to_list() == [times[1]]
    alone = replace(placed, source=placed.source.clear())
    assert judge_groups(alone, TOTALS, WHOLE)["time"].to_list() == [times[0]]


def test_keys_that_share_a_hash_are_refused() -> None:
    made = known(THREE, ("3", "-6.70"))
    other = made.target.with_columns(pl.lit("L").alias("key"))
    with pytest.raises(CorruptionError):
        judge_groups(replace(made, target=other), TOTALS, WHOLE)
    rows = known(THREE, ("3", "-6.70"), ("3", "-6.70"))
    both = rows.target.with_columns(pl.Series("key", ["K", "L"]))
    with pytest.raises(CorruptionError):
        judge_groups(replace(rows, target=both), TOTALS, WHOLE)
    several = made.source.with_columns(pl.Series("key", ["K", "K", "L"]))
    with pytest.raises(CorruptionError):
        judge_groups(replace(made, source=several), TOTALS, WHOLE)


MOST = "9" * 25 + ".99"


@pytest.mark.parametrize(
    ("amount", "right"),
    [
        (MOST, ("matched", None)),
        (f"-{MOST}", ("matched", None)),
        ("1" + "0" * 25, ("undecidable", "no_amount")),
        ("-1" + "0" * 25, ("undecidable", "no_amount")),
    ],
)
def test_an_amount_has_as_many_digits_as_a_sum_can_have(amount: str, right: tuple[str, str | None]) -> None:
    total = format(Decimal(amount) + Decimal("0.10"), "f")
    assert said(known((("1", "0.1"), ("2", amount)), ("2", total))) == right


TWO = Totals.of(Grouping(identity="line", sums=("total", "tax")), {"total": "decimal(12,2)", "tax": "decimal(12,4)"})


@pytest.mark.parametrize(
    ("row", "right"),
    [
        (("-6.70", "0.0003"), ("matched", None)),
        (("-6.70", "0.03"), ("mismatched", None)),
        (("-6.71", "0.0003"), ("mismatched", None)),
        (("0.0003", "-6.70"), ("mismatched", None)),
        (("-6.90", "0.0001"), ("mismatched", "record_not_counted")),
        (("-6.90", "0.0003"), ("mismatched", None)),
    ],
)
def test_each_sum_is_of_its_own_column_with_its_own_digits(row: tuple[str, str], right: tuple[str, str | None]) -> None:
    made = known(THREE, (None, row[0]))
    tax = pl.Series("c:tax", ["0.0001", "0.0002", "0"])
    both = replace(
        made,
        source=made.source.with_columns(tax),
        target=made.target.with_columns(pl.Series("c:tax", [row[1]])),
    )
    assert said(both, totals=TWO) == right


@pytest.mark.parametrize(
    ("aborted", "row", "right"),
    [
        ([("8", "1"), ("9", "2")], ("5", "-3.70"), "read_uncommitted"),
        ([("8", "1"), ("9", "2")], ("4", "-4.70"), "read_uncommitted"),
        ([("8", "1"), ("9", "2")], ("4", "-3.70"), None),
        ([("2", "0.2")], ("4", "-6.50"), None),
    ],
)
def test_aborted_records_explain_a_row_one_or_all_of_them_and_none_that_was_committed(
    aborted: list[tuple[str, str]], row: tuple[str, str], right: str | None
) -> None:
    made = known((*THREE, *aborted), row)
    flags = pl.Series("is_aborted", [False] * 3 + [True] * len(aborted))
    assert said(replace(made, source=made.source.with_columns(flags))) == ("mismatched", right)
    filters = [[], [], [], *([[HOP]] * len(aborted))]
    excluded = pl.Series("excluded_by", filters, dtype=pl.List(pl.String))
    assert said(replace(made, source=made.source.with_columns(flags, excluded))) == ("mismatched", None)


def test_evidence_names_the_copies_that_a_row_may_have_counted_again() -> None:
    made = known((("1", "5"), ("3", "1"), ("3", "1"), ("3", "1")), ("3", "7.00"))
    judged = judge_groups(made, TOTALS, WHOLE)
    (evidence,) = evidence_of_groups(made, TOTALS, judged).values()
    assert evidence["group"]["may_be"] == ["0:2"]
    assert judged["hint"].to_list() == ["resend_counted"]


def test_evidence_has_the_columns_that_differ_alone_and_each_copy_once() -> None:
    made = known((("1", "5"), ("3", "1"), ("3", "1")), (None, "7.00"))
    judged = judge_groups(made, SUMS, WHOLE)
    (evidence,) = evidence_of_groups(made, SUMS, judged).values()
    assert evidence["group"]["may_be"] == ["0:2"]
    counted = known(THREE, ("3", "-6.00"))
    (evidence,) = evidence_of_groups(counted, TOTALS, judge_groups(counted, TOTALS, WHOLE)).values()
    assert evidence["columns"] == {"total": {"source": "-6.70", "target": "-6.00"}}


def test_a_difference_that_several_mistakes_would_make_has_no_cause() -> None:
    """Without a count, an amount too many is also the opposite amount too few."""
    records: Records = (("1", "5"), ("2", "-5"), ("3", "1"), ("1", "5"))
    assert said(known(records, (None, "6")), totals=SUMS) == ("mismatched", None)
    assert said(known(records, (None, "0")), totals=SUMS) == ("mismatched", "record_not_counted")
    aborted = pl.Series("is_aborted", [False] * 3 + [True])
    made = known((("1", "4"), ("2", "-5"), ("3", "1"), ("9", "5")), (None, "5"))
    assert said(replace(made, source=made.source.with_columns(aborted)), totals=SUMS) == ("mismatched", None)
