"""Transpose rows of numbers into one table row per number, so that few expectations cover many numbers at once.

The library takes 9 ms for an expectation, 30 ms for a table and nothing for a row of one. It checks whether the numbers
are known, not too low and not too high, and names the rows that are not; from the names every planned expectation gets
an outcome of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from makewhole.gate.planned_expectation import Planned, Role

ID_COLUMN = "expectation"
"""The column by which the library names rows."""

_KNOWN, _BETWEEN = "expect_column_values_to_not_be_null", "expect_column_values_to_be_between"


@dataclass(frozen=True, kw_only=True)
class TransposedGroup:
    """Planned expectations of one kind and severity, as rows of one table.

    `ids` are those of the planned expectations, `columns` the table, `expectations` those that are run on all of it.
    """

    ids: tuple[str, ...]
    columns: Mapping[str, Sequence[Any]]
    expectations: tuple[Planned, ...]

    def failed_ids(self, results: Sequence[Any]) -> frozenset[str] | None:
        """Return the planned expectations that failed; None when a result does not cover every row of the table."""
        failed: set[str] = set()
        for result in results:
            found = [str(row[ID_COLUMN]) for row in result.result.get("unexpected_index_list") or ()]
            counted = (result.result.get("element_count"), result.result.get("unexpected_count"))
            if counted != (len(self.ids), len(found)) or bool(result.success) is bool(found):
                return None
            failed.update(found)
        return frozenset(failed) if len(results) == len(self.expectations) and failed <= {*self.ids} else None


class NumberSuite(Protocol):
    """A named row of numbers, column to number, and the expectations on it. Their ids are unique among all suites."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> Mapping[str, int | None]: ...
    @property
    def planned(self) -> Sequence[Planned]: ...


def transpose(suites: Sequence[NumberSuite]) -> Iterator[TransposedGroup]:
    """Group the planned expectations of all suites by kind and severity, in the order of the first of each."""
    numbers = [(one, suite.row[one.kwargs["column"]]) for suite in suites for one in suite.planned]
    for kind, severity in dict.fromkeys((one.type, one.severity) for one, _ in numbers):
        of_kind = [(one, value) for one, value in numbers if (one.type, one.severity) == (kind, severity)]
        make = {_KNOWN: _known_group, _BETWEEN: _between_group}[kind]
        yield make(of_kind, Role.NOTE if severity == "warning" else Role.EVIDENCE)


def _known_group(numbers: Sequence[tuple[Planned, int | None]], role: Role) -> TransposedGroup:
    ids = tuple(one.id for one, _ in numbers)
    columns = {ID_COLUMN: ids, "value": _numbers(value for _, value in numbers)}
    return TransposedGroup(ids=ids, columns=columns, expectations=(_expectation(_KNOWN, {"column": "value"}, role),))


def _between_group(numbers: Sequence[tuple[Planned, int | None]], role: Role) -> TransposedGroup:
    """Group by the margins between a number and its limits, which must not be below zero.

    Unknown numbers pass: the not-null expectations cover them.
    """
    ids = tuple(one.id for one, _ in numbers)
    values = [value for _, value in numbers]
    limits = [(one.kwargs["min_value"], one.kwargs["max_value"]) for one, _ in numbers]
    above = (None if value is None else value - least for value, (least, _) in zip(values, limits, strict=True))
    below = (None if value is None else most - value for value, (_, most) in zip(values, limits, strict=True))
    margins = {"margin_above_least": _numbers(above), "margin_below_most": _numbers(below)}
    return TransposedGroup(
        ids=ids,
        columns={ID_COLUMN: ids, **margins},
        expectations=tuple(_expectation(_BETWEEN, {"column": name, "min_value": 0}, role) for name in margins),
    )


def _numbers(values: Iterator[int | None]) -> list[float]:
    """Convert numbers as the library takes them: NaN for what is not known. Integers up to 2^53 stay exact."""
    return [float("nan") if value is None else float(value) for value in values]


def _expectation(kind: str, kwargs: Mapping[str, Any], role: Role) -> Planned:
    return Planned(id=f"{kind} {kwargs['column']}", type=kind, kwargs=kwargs, role=role, sentence="")
