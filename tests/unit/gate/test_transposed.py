"""A transposed row of numbers, and what the library's results on it mean. The library is played by hand."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.gate import expectations
from makewhole.gate.expectations import SuiteRun, run_on_rows
from makewhole.gate.planned_expectation import HIGHEST, Number, Role
from makewhole.gate.suite import HopSuite
from makewhole.gate.transposed import ID_COLUMN, TransposedNumbers, transpose

pytestmark = pytest.mark.unit

NUMBERS = [
    Number(name="rows", value=3, at_least=1, at_most=HIGHEST, sentence=""),
    Number(name="missing", value=2, at_most=0, sentence="", role=Role.FINDING),
    Number(name="late", value=None, at_most=0, sentence="", role=Role.NOTE),
]
SUITE = HopSuite(hop="hop", numbers=tuple(NUMBERS))


def test_every_planned_expectation_is_a_row_and_every_kind_and_severity_an_expectation_on_all() -> None:
    table = transpose([SUITE])
    assert table.ids == tuple(expectation.id for expectation in SUITE.planned)
    assert [(expectation.kwargs["column"], expectation.severity) for expectation in table.expectations] == [
        ("number", "critical"),
        ("margin", "critical"),
        ("margin_of_note", "warning"),
    ]
    assert [len(column) for column in table.columns.values()] == [6] * 4


def test_a_kind_that_nothing_is_planned_of_is_not_asked_for() -> None:
    table = transpose([HopSuite(hop="hop", numbers=tuple(NUMBERS[:2]))])
    assert list(table.columns) == [ID_COLUMN, "number", "margin"]
    assert [expectation.kwargs["column"] for expectation in table.expectations] == ["number", "margin"]
    assert transpose([]).expectations == ()


def test_a_row_has_the_number_or_the_margin_to_the_nearer_limit_and_none_where_nothing_is_known() -> None:
    columns = transpose([SUITE]).columns
    assert [None if math.isnan(value) else value for value in columns["number"]] == [3, 0, 2, 0, None, 0]
    assert list(columns["margin"]) == [0, 2, 0, -2, 0, 0]
    assert [None if math.isnan(value) else value for value in columns["margin_of_note"]] == [0, 0, 0, 0, 0, None]


@pytest.mark.parametrize(
    ("value", "least", "most", "margin"),
    [(5, 5, 9, 0), (9, 5, 9, 0), (4, 5, 9, -1), (10, 5, 9, -1), (HIGHEST, 0, HIGHEST, 0), (-1, 0, HIGHEST, -1)],
)
def test_a_margin_is_below_zero_outside_of_the_limits_only(value: int, least: int, most: int, margin: float) -> None:
    number = Number(name="x", value=value, at_least=least, at_most=most, sentence="")
    assert transpose([HopSuite(hop="hop", numbers=(number,))]).columns["margin"][1] == margin


def test_rows_that_the_library_names_have_failed_as_badly_as_it_says() -> None:
    assert table().failures([library_result([]), library_result(["hop missing"])]) == {"hop missing": "critical"}
    assert table().failures([library_result([]), library_result(["hop rows"], severity="warning")]) == {
        "hop rows": "warning"
    }
    assert table().failures([library_result([]), library_result([])]) == {}


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
    assert table().failures([library_result([]), library_result(["hop missing"], **lying)]) is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_result_too_few_or_too_many_is_none(count: int) -> None:
    assert table().failures([library_result([])] * count) is None


def test_a_failure_that_names_nothing_is_none() -> None:
    assert table().failures([library_result([]), library_result([], success=False)]) is None


@pytest.mark.parametrize(("success", "failed"), [(False, []), (True, ["hop missing"])])
def test_a_run_that_contradicts_its_results_has_no_outcome(
    monkeypatch: pytest.MonkeyPatch, success: bool, failed: list[str]
) -> None:
    run = SuiteRun(name="numbers", success=success, worst=None, outcomes=())
    results = [library_result([]), library_result(failed)]
    monkeypatch.setattr(expectations, "_run_in_pandas", lambda *_: (run, results))

    [answer] = run_on_rows([HopSuite(hop="hop", numbers=tuple(NUMBERS[:2]))])

    assert (answer.success, answer.outcomes) == (False, ())


def table() -> TransposedNumbers:
    return transpose([HopSuite(hop="hop", numbers=tuple(NUMBERS[:2]))])


def library_result(
    failed: Sequence[str], *, success: bool | None = None, severity: str = "critical", **result: Any
) -> Any:
    given = {
        "element_count": 4,
        "unexpected_count": len(failed),
        "unexpected_index_list": [{ID_COLUMN: failure} for failure in failed],
    }
    return SimpleNamespace(
        success=not failed if success is None else success,
        result=given | result,
        expectation_config=SimpleNamespace(severity=SimpleNamespace(value=severity)),
    )
