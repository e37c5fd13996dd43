"""Choose how many drawn cases a property is tried on: a part in every change, all of them in `make test-all`."""

import os
from collections.abc import Sequence
from typing import TypeVar

ALL_EXAMPLES = os.environ.get("MAKEWHOLE_EXAMPLES") == "all"
_LEAST = 25

Case = TypeVar("Case")


def examples(number: int, *, share: int = 6) -> int:
    """Return the number with `MAKEWHOLE_EXAMPLES=all`, and else a share of it, one in six by default, but no fewer than
    twenty-five: for what costs no more than a moment."""
    return number if ALL_EXAMPLES else min(number, max(number // share, _LEAST))


def seeds(number: int, *, share: int = 3) -> range:
    """Return the seeds of histories or worlds that take seconds each: all with `MAKEWHOLE_EXAMPLES=all`, and else a
    share of them, one in three by default."""
    return range(number if ALL_EXAMPLES else -(-number // share))


def in_turn(number: int, cases: Sequence[Case]) -> Sequence[Case]:
    """Return all of the cases with `MAKEWHOLE_EXAMPLES=all`, and else the one whose turn it is: for what is tried for
    many numbers beside it."""
    return cases if ALL_EXAMPLES else [cases[number % len(cases)]]
