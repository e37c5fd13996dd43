"""Test which combinations of parameters every change runs."""

from itertools import product

import pytest

from tests.world.combinations import Value, not_needed

pytestmark = pytest.mark.unit


def combinations(*sizes: int) -> dict[tuple[int, ...], frozenset[Value]]:
    """Name the combinations of parameters with so many values each."""
    return {
        combination: frozenset(((f"p{place}",), (value,)) for place, value in enumerate(combination))
        for combination in product(*(range(size) for size in sizes))
    }


@pytest.mark.parametrize("sizes", [(2, 2), (2, 2, 2), (3, 2), (4, 4), (5, 1), (2, 10, 3)])
def test_every_value_of_every_parameter_is_shown_by_as_many_as_the_longest_has(sizes: tuple[int, ...]) -> None:
    every = combinations(*sizes)

    chosen = [case for case in every if case not in not_needed(every)]

    assert len(chosen) == max(sizes)
    assert set[Value]().union(*(every[number] for number in chosen)) == set[Value]().union(*every.values())


def test_of_a_single_parameter_every_value_is_run() -> None:
    assert not_needed(combinations(4)) == []


def test_what_takes_no_parameter_is_run() -> None:
    assert not_needed({"alone": frozenset[Value]()}) == []
