"""Test that what shares a start is given to one process."""

from typing import Any, cast

import pytest

from tests.world.shared_starts import with_shared_starts

pytestmark = pytest.mark.unit


def ordered(monkeypatch: pytest.MonkeyPatch, names: str, processes: int) -> str:
    """Order tests of one letter; those called `s` and those called `h` are groups."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(processes))
    groups = [lambda item: item == "s", lambda item: item == "h"]
    return "".join(cast(Any, with_shared_starts(cast(Any, list(names)), cast(Any, groups))))


@pytest.mark.parametrize(
    ("names", "processes", "expected"),
    [
        ("abshcdshefsh", 3, "sssahhhbcdef"),
        ("abshcdshefsh", 1, "ssshhhabcdef"),
        ("abcdef", 3, "abcdef"),
        ("ssssab", 3, "ssssab"),
        ("hab", 3, "ahb"),
        ("", 3, ""),
    ],
)
def test_each_group_begins_a_stretch_of_its_own_and_nothing_is_left_out(
    monkeypatch: pytest.MonkeyPatch, names: str, processes: int, expected: str
) -> None:
    assert ordered(monkeypatch, names, processes) == expected
