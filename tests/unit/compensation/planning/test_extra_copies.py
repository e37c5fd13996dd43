"""Extra copies are selected, and those that were taken back before are left out."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.planning.extra_copies import extra_records, extra_rows, left_to_reverse, row_copy
from makewhole.model.errors import RefusedError
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals, Repetition, ReversedCopy
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.tables.rows import TableRow

pytestmark = pytest.mark.unit

HASH = "0" * 32
TABLE = TablePoint(name="grants", kind=PointKind.STORE, connection="db", table="grants", key=("id",), time="at")


def finding(copies: int, verdict: Verdict = Verdict.DUPLICATE, **evidence: Any) -> Finding:
    return Finding(
        hop="coupons→grants",
        key="C1",
        key_hash=HASH,
        verdict=verdict,
        cause=Cause.UPSTREAM_DUPLICATE,
        evidence={"target_copies": copies, **evidence},
    )


def row(number: int, *, time: int | None = None, text: str = "") -> TableRow:
    at = number if time is None else time
    return TableRow(table_oid=5, ctid=f"(0,{number})", text=f'{{"at": "{at}", "note": "{text or number}"}}')


def past(*copies: Mapping[str, Any], window: int = 1, is_done: bool = True) -> PastReversals:
    made = tuple(
        ReversedCopy(
            plan="p-1-x", window=window, seq=seq, target="reversals", place=TABLE.place, copy=copy, is_done=is_done
        )
        for seq, copy in enumerate(copies)
    )
    return PastReversals(window=1, reversed={HASH: made}, places=frozenset((TABLE.place,)))


# Records


@pytest.mark.parametrize(
    ("repeated", "copies", "expected"),
    [
        ({"here": ["0:3", "1:4", "2:0"], "elsewhere": 0}, 3, [(2, 1, 4), (3, 2, 0)]),
        ({"here": ["0:3", "1:4"], "elsewhere": 1}, 3, [(2, 0, 3), (3, 1, 4)]),
        ({"here": ["0:3"], "elsewhere": 2}, 3, [(3, 0, 3)]),
        ({"here": [], "elsewhere": 2}, 2, []),
    ],
)
def test_the_first_record_survives_wherever_it_is(
    repeated: Mapping[str, Any], copies: int, expected: list[tuple[int, int, int]]
) -> None:
    extra = extra_records(finding(copies, repeated=repeated), TABLE, NOTHING_REVERSED)

    assert extra == [Repetition(number=number, partition=part, offset=offset) for number, part, offset in expected]


@pytest.mark.parametrize("evidence", [{}, {"repeated": {"here": ["0:1", "0:2"], "elsewhere": 0}}])
def test_records_that_the_evidence_does_not_distinguish_are_left_to_a_person(evidence: Mapping[str, Any]) -> None:
    named = 2 if evidence else 0
    with pytest.raises(RefusedError) as caught:
        extra_records(finding(3, **evidence), TABLE, NOTHING_REVERSED)

    assert str(caught.value) == (
        f"not known: {named} of the key's 3 records could be distinguished. The others name a plan that did not write "
        "them, or are too many; reverse by hand"
    )


def test_a_record_is_known_again_by_its_position_in_its_window() -> None:
    twice = finding(3, repeated={"here": ["0:3", "0:4", "0:5"], "elsewhere": 0})
    third = [Repetition(number=3, partition=0, offset=5)]

    assert extra_records(twice, TABLE, past({"partition": 0, "offset": 4})) == third
    other_window = past({"partition": 0, "offset": 4}, window=2)
    assert len(extra_records(twice, TABLE, other_window)) == 2


# Rows


def test_all_rows_of_an_unexpected_key_are_too_many() -> None:
    assert (extra_rows(finding(3)), extra_rows(finding(3, Verdict.UNEXPECTED))) == (2, 3)


def test_a_row_is_identified_by_place_text_and_a_time_of_its_own() -> None:
    rows = [row(1), row(2), row(3, time=1)]

    assert row_copy(rows[1], rows, TABLE) == {
        "table_oid": 5,
        "ctid": "(0,2)",
        "sha256": hashlib.sha256(b'{"at": "2", "note": "2"}').hexdigest()[:32],
        "rows": 3,
        "time": "2",
    }
    assert "time" not in row_copy(rows[2], rows, TABLE)
    assert "time" not in row_copy(rows[1], rows, replace(TABLE, time=None))


@given(st.integers(2, 6), st.data())
def test_what_is_as_it_was_is_taken_back_once_in_any_number_of_plans(count: int, data: st.DataObject) -> None:
    rows = [row(number) for number in range(1, count + 1)]
    before = data.draw(st.lists(st.sampled_from(rows[1:]), unique=True))

    left = left_to_reverse(rows, finding(count), TABLE, past(*(row_copy(copied, rows, TABLE) for copied in before)))

    assert [copied for _, copied in left] == [copied for copied in rows[1:] if copied not in before]
    assert [number for number, _ in left] == [rows.index(copied) + 1 for _, copied in left]


def test_a_row_that_was_marked_since_is_known_by_its_time() -> None:
    rows = [row(1), row(2)]
    before = past(row_copy(rows[1], rows, TABLE))
    marked = [rows[0], TableRow(table_oid=5, ctid="(7,7)", text='{"at": "2", "note": "reversed"}')]

    assert left_to_reverse(marked, finding(2), TABLE, before) == []


CHANGED = (
    "not known: plan p-1-x took back a row of this key, and its rows changed since. Whether an extra row is that one, "
    "what its reversal wrote, or one more repetition cannot be determined; reverse by hand"
)


@pytest.mark.parametrize(
    "now",
    [
        [row(1), row(2), row(3)],  # one more, beside the one that was taken back
        [row(1), row(3)],  # another one in its stead
        [row(1), row(2, time=9)],  # the same place with another text
    ],
)
def test_rows_that_cannot_be_distinguished_from_those_taken_back_are_left_to_a_person(now: list[TableRow]) -> None:
    rows = [row(1), row(2)]
    with pytest.raises(RefusedError) as caught:
        left_to_reverse(now, finding(len(now)), TABLE, past(row_copy(rows[1], rows, TABLE)))

    assert str(caught.value) == CHANGED


def test_what_a_begun_plan_did_is_not_guessed() -> None:
    rows = [row(1), row(2)]
    with pytest.raises(RefusedError) as caught:
        left_to_reverse(rows, finding(2), TABLE, past(row_copy(rows[1], rows, TABLE), is_done=False))

    assert str(caught.value) == (
        "not known: plan p-1-x was begun, and the journal has no receipt of its action 0, which takes back a copy of "
        "this key. Look for both numbers in the lineage headers of reversals"
    )


def test_what_was_taken_back_in_a_place_that_is_no_point_any_more_may_be_the_same_one_renamed() -> None:
    rows = [row(1), row(2)]
    before = replace(past(row_copy(rows[1], rows, TABLE)), places=frozenset(("db:ledger",)))
    with pytest.raises(RefusedError) as caught:
        left_to_reverse(rows, finding(2), replace(TABLE, table="ledger"), before)

    assert str(caught.value) == (
        "not known: plan p-1-x took back a copy of this key in db:grants, which is no point of the pipeline any more; "
        "whether it is this one under another name cannot be determined. Reverse by hand"
    )
    renamed = replace(TABLE, name="ledger")
    assert left_to_reverse(rows, finding(2), renamed, past(row_copy(rows[1], rows, TABLE))) == []


def test_what_was_taken_back_in_a_table_is_known_there_by_whatever_name_leads_to_it() -> None:
    rows = [row(1), row(2)]
    before = past(row_copy(rows[1], rows, TABLE))
    made = tuple(replace(copy, identity="server 7, table 16384") for copy in before.reversed[HASH])
    moved = replace(TABLE, table="dw.grants", identity="server 7, table 16384")
    known = replace(before, reversed={HASH: made}, places=moved.places)
    assert left_to_reverse(rows, finding(2), moved, known) == []
    other = replace(moved, identity="server 7, table 16999")
    with pytest.raises(RefusedError, match="not known: plan p-1-x took back a copy of this key in db:grants"):
        left_to_reverse(rows, finding(2), other, replace(known, places=other.places))


def test_another_number_of_rows_than_was_judged_is_stale() -> None:
    with pytest.raises(RefusedError) as caught:
        left_to_reverse([row(1)], finding(2), TABLE, NOTHING_REVERSED)

    assert str(caught.value) == ("stale: the key has 1 rows now and had 2 when it was judged; run the window again")
