"""A row of numbers laid on its side, a line per number: few expectations, asked of many lines at once.

The library takes 9 ms for an expectation and nothing for a line. It is asked whether the numbers are known, not too low
and not too high, and names the lines that are not; from the names every planned expectation gets an outcome of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.gate.planned import Planned, Role

ID_COLUMN = "expectation"
"""The column by which the library names lines."""

_KNOWN, _BETWEEN = "expect_column_values_to_not_be_null", "expect_column_values_to_be_between"


@dataclass(frozen=True, kw_only=True)
class TransposedGroup:
    """Planned expectations of one kind and severity. `lines` are a table by columns, `asked` is asked of all of it."""

    names: tuple[str, ...]
    lines: Mapping[str, Sequence[Any]]
    asked: tuple[Planned, ...]

    def unexpected(self, results: Sequence[Any]) -> frozenset[str] | None:
        """The planned expectations that failed; None when the library's answer is not one to all lines."""
        failed: set[str] = set()
        for result in results:
            found = [str(line[ID_COLUMN]) for line in result.result.get("unexpected_index_list") or ()]
            counted = (result.result.get("element_count"), result.result.get("unexpected_count"))
            if counted != (len(self.names), len(found)) or bool(result.success) is bool(found):
                return None
            failed.update(found)
        return frozenset(failed) if len(results) == len(self.asked) and failed <= {*self.names} else None


def transpose(row: Mapping[str, int | None], planned: Sequence[Planned]) -> Iterator[TransposedGroup]:
    """The parts that planned expectations on a row come to, in the order of their first one."""
    kinds = dict.fromkeys((one.type, one.severity) for one in planned)
    for kind, severity in kinds:
        of_kind = [one for one in planned if (one.type, one.severity) == (kind, severity)]
        make = {_KNOWN: _known, _BETWEEN: _between}[kind]
        yield make(row, of_kind, Role.NOTE if severity == "warning" else Role.EVIDENCE)


def _known(row: Mapping[str, int | None], planned: Sequence[Planned], role: Role) -> TransposedGroup:
    names = tuple(one.id for one in planned)
    lines = {ID_COLUMN: names, "value": _numbers(row[one.kwargs["column"]] for one in planned)}
    return TransposedGroup(names=names, lines=lines, asked=(_asked(_KNOWN, {"column": "value"}, role),))


def _between(row: Mapping[str, int | None], planned: Sequence[Planned], role: Role) -> TransposedGroup:
    """By the room between a number and its limits, which is not below zero. Unknown numbers pass: they are asked about
    on their own."""
    names = tuple(one.id for one in planned)
    values = [row[one.kwargs["column"]] for one in planned]
    limits = [(one.kwargs["min_value"], one.kwargs["max_value"]) for one in planned]
    above = (None if value is None else value - least for value, (least, _) in zip(values, limits, strict=True))
    below = (None if value is None else most - value for value, (_, most) in zip(values, limits, strict=True))
    lines = {ID_COLUMN: names, "room_above_least": _numbers(above), "room_below_most": _numbers(below)}
    rooms = ("room_above_least", "room_below_most")
    return TransposedGroup(
        names=names,
        lines=lines,
        asked=tuple(_asked(_BETWEEN, {"column": room, "min_value": 0}, role) for room in rooms),
    )


def _numbers(values: Iterator[int | None]) -> list[float]:
    """As the library takes them: NaN for what is not known. Whole numbers up to 2^53 stay exact."""
    return [float("nan") if value is None else float(value) for value in values]


def _asked(kind: str, kwargs: Mapping[str, Any], role: Role) -> Planned:
    return Planned(id=f"{kind} {kwargs['column']}", type=kind, kwargs=kwargs, role=role, sentence="")
