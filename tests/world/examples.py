"""Choose how many drawn cases a property is tried on: a part in every change, all of them in `make test-all`."""

import os
from collections.abc import Sequence
from typing import TypeVar

_ALL = os.environ.get("MAKEWHOLE_EXAMPLES") == "all"
_SHARE, _LEAST = 6, 25

Case = TypeVar("Case")


def examples(number: int) -> int:
    """Return the number with `MAKEWHOLE_EXAMPLES=all`, as `make test-all` runs it, and else a sixth of it, but no fewer
    than twenty-five: for what costs no more than a moment."""
    return number if _ALL else min(number, max(number // _SHARE, _LEAST))


def seeds(number: int) -> range:
    """Return the seeds of histories or worlds that take seconds each: all with `MAKEWHOLE_EXAMPLES=all`, and else a
    third."""
    return range(number if _ALL else -(-number // 3))


def in_turn(number: int, cases: Sequence[Case]) -> Sequence[Case]:
    """Return all of the cases with `MAKEWHOLE_EXAMPLES=all`, and else the one whose turn it is: for what is tried for
    many numbers beside it."""
    return cases if _ALL else [cases[number % len(cases)]]
