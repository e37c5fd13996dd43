"""Choose which combinations of a test's parameters are run with every change: as many as show each value once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import pytest

Item = TypeVar("Item")
Value = tuple[tuple[str, ...], tuple[int, ...]]
"""Names of parameters that vary together, and identities of their values."""


def left_to_test_all(items: Iterable[pytest.Item]) -> Iterator[pytest.Function]:
    """Yield the combinations that show no value which others do not show; of what is `extended` nothing is chosen."""
    by_test = defaultdict[str, dict[pytest.Function, frozenset[Value]]](dict)
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker("extended"):
            by_test[item.nodeid.partition("[")[0]][item] = _values(item)
    for combinations in by_test.values():
        yield from not_needed(combinations)


def with_every_change(cases: Iterable[object], *, first: int) -> list[object]:
    """Return the values of a parameter, of which so many run with every change; the others are left to
    `make test-all`."""
    values = list(cases)
    return [*values[:first], *(pytest.param(value, marks=pytest.mark.extended) for value in values[first:])]


def not_needed(combinations: Mapping[Item, frozenset[Value]]) -> list[Item]:
    """Return those that are left when the one with the most values that were not shown yet is taken again and again,
    until all were. What has one value only is always needed: it may stand for itself."""
    left = {item: values for item, values in combinations.items() if len(values) > 1}
    to_show = set[Value]().union(*left.values())
    while to_show:
        chosen = max(left, key=lambda item: len(left[item] & to_show))  # the first of equals
        to_show -= left.pop(chosen)
    return list(left)


def _values(item: pytest.Function) -> frozenset[Value]:
    if not hasattr(item, "callspec"):
        return frozenset()
    params = item.callspec.params
    together = [_names(mark) for mark in item.iter_markers("parametrize")]
    of_fixtures = [(name,) for name in params if not any(name in names for names in together)]
    return frozenset((names, tuple(id(params[name]) for name in names)) for names in (*together, *of_fixtures))


def _names(mark: pytest.Mark) -> tuple[str, ...]:
    names = mark.args[0]
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
