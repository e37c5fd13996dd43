"""Transpose rows of numbers into one table with a row per planned expectation, so that few expectations cover them all.

The library takes 9 ms for an expectation, 30 ms for a table and nothing for a row of one. It checks whether the numbers
are known and within their limits, and names the rows that are not; from the names every planned expectation gets an
outcome of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Protocol

from makewhole.gate.planned_expectation import Planned, Role

ID_COLUMN = "expectation"
"""The column by which the library names rows."""

_KNOWN, _BETWEEN = "expect_column_values_to_not_be_null", "expect_column_values_to_be_between"
_FITS = 0.0  # what stands where an expectation has nothing to say of a row


@dataclass(frozen=True, kw_only=True)
class TransposedNumbers:
    """Planned expectations as rows of one table.

    `ids` are those of the planned expectations, `columns` the table, `expectations` those that are run on all of it.
    """

    ids: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    expectations: tuple[Planned, ...]

    def failures(self, results: Sequence[Any]) -> dict[str, str] | None:
        """Return the severity of each planned expectation that failed, as the library has it; None when a result does
        not cover every row of the table."""
        failed: dict[str, str] = {}
        for result in results:
            unexpected = [str(row[ID_COLUMN]) for row in result.result.get("unexpected_index_list") or ()]
            counted = (result.result.get("element_count"), result.result.get("unexpected_count"))
            if counted != (len(self.ids), len(unexpected)) or bool(result.success) is bool(unexpected):
                return None
            failed |= dict.fromkeys(unexpected, str(result.expectation_config.severity.value))
        return failed if len(results) == len(self.expectations) and failed.keys() <= {*self.ids} else None


class NumberSuite(Protocol):
    """A named row of numbers, column to number, and the expectations on it. Their ids are unique among all suites."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> Mapping[str, int | None]: ...
    @property
    def planned(self) -> Sequence[Planned]: ...


def transpose(suites: Sequence[NumberSuite]) -> TransposedNumbers:
    """Make a row of every planned expectation: of the number itself where it must be known, and where it has limits of
    its margin, the distance to the nearer one, which must not be below zero. Unknown numbers have no margin: what must
    be known covers them."""
    numbers = [(check, suite.row[check.kwargs["column"]]) for suite in suites for check in suite.planned]
    kinds = {
        "number": (_KNOWN, Role.EVIDENCE, {}),
        "margin": (_BETWEEN, Role.EVIDENCE, {"min_value": 0}),
        "margin_of_note": (_BETWEEN, Role.NOTE, {"min_value": 0}),
    }
    columns: dict[str, list[float]] = {name: [] for name in kinds}
    for check, value in numbers:
        own = _column_of(check)
        measured = _number(value) if own == "number" else _margin(check, value)
        for name, column in columns.items():
            column.append(measured if name == own else _FITS)
    asked = {_column_of(check) for check, _ in numbers}
    ids = tuple(check.id for check, _ in numbers)
    return TransposedNumbers(
        ids=ids,
        columns={ID_COLUMN: ids, **{name: column for name, column in columns.items() if name in asked}},
        expectations=tuple(
            Planned(id=f"{type_} {name}", type=type_, kwargs={"column": name, **limits}, role=role, sentence="")
            for name, (type_, role, limits) in kinds.items()
            if name in asked
        ),
    )


def _column_of(check: Planned) -> str:
    of_type = {_KNOWN: "number", _BETWEEN: "margin_of_note" if check.severity == "warning" else "margin"}
    return of_type[check.type]


def _number(value: int | None) -> float:
    """Convert a number as the library takes it: NaN for what is not known. Integers up to 2^53 stay exact."""
    return nan if value is None else float(value)


def _margin(check: Planned, value: int | None) -> float:
    limits = check.kwargs
    return nan if value is None else float(min(value - limits["min_value"], limits["max_value"] - value))
