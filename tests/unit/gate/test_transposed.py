"""A transposed row of numbers, and what the library's results on it mean. The library is played by hand."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.gate.planned_expectation import HIGHEST, Number, Role
from makewhole.gate.suite import HopSuite
from makewhole.gate.transposed import ID_COLUMN, TransposedGroup, transpose

pytestmark = pytest.mark.unit

NUMBERS = [
    Number(name="rows", value=3, at_least=1, at_most=HIGHEST, sentence=""),
    Number(name="missing", value=2, at_most=0, sentence="", role=Role.FINDING),
    Number(name="late", value=None, at_most=0, sentence="", role=Role.NOTE),
]
SUITE = HopSuite(hop="hop", numbers=tuple(NUMBERS))


def test_every_planned_expectation_is_in_one_group_of_its_severity() -> None:
    groups = list(transpose([SUITE]))
    assert [(group.ids, {one.severity for one in group.expectations}) for group in groups] == [
        (("hop rows is known", "hop missing is known", "hop late is known"), {"critical"}),
        (("hop rows", "hop missing"), {"critical"}),
        (("hop late",), {"warning"}),
    ]


def test_a_row_has_the_margins_to_both_limits_and_none_where_nothing_is_known() -> None:
    known, critical, note = transpose([SUITE])
    assert known.columns["value"][:2] == [3, 2]
    assert math.isnan(known.columns["value"][2])
    assert dict(critical.columns) == {
        ID_COLUMN: ("hop rows", "hop missing"),
        "margin_above_least": [2, 2],
        "margin_below_most": [HIGHEST - 3, -2],
    }
    assert all(math.isnan(note.columns[margin][0]) for margin in ("margin_above_least", "margin_below_most"))


def test_rows_that_the_library_names_have_failed() -> None:
    assert critical().failed_ids([library_result([]), library_result(["hop missing"])]) == frozenset({"hop missing"})
    assert critical().failed_ids([library_result([]), library_result([])]) == frozenset()


@pytest.mark.parametrize(
    "lying",
    [
        {"element_count": 1},
        {"element_count": None},
        {"unexpected_count": 0},
        {"unexpected_index_list": None},
        {"unexpected_index_list": [{ID_COLUMN: "another hop missing"}]},
        {"success": True},
    ],
)
def test_a_result_that_does_not_cover_every_row_is_none(lying: dict[str, Any]) -> None:
    assert critical().failed_ids([library_result([]), library_result(["hop missing"], **lying)]) is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_result_too_few_or_too_many_is_none(count: int) -> None:
    assert critical().failed_ids([library_result([])] * count) is None


def test_a_failure_that_names_nothing_is_none() -> None:
    assert critical().failed_ids([library_result([]), library_result([], success=False)]) is None


def critical() -> TransposedGroup:
    return list(transpose([SUITE]))[1]


def library_result(failed: Sequence[str], *, success: bool | None = None, **result: Any) -> Any:
    given = {
        "element_count": 2,
        "unexpected_count": len(failed),
        "unexpected_index_list": [{ID_COLUMN: one} for one in failed],
    }
    return SimpleNamespace(success=not failed if success is None else success, result=given | result)
