"""Say on how many examples a property is tried: they are drawn anew in each run."""

import os

_ALL = os.environ.get("MAKEWHOLE_EXAMPLES") == "all"
_SHARE, _LEAST = 3, 40


def examples(number: int) -> int:
    """Return the number with `MAKEWHOLE_EXAMPLES=all`, as `make test-all` runs it, and else a third of it, but no fewer
    than forty."""
    return number if _ALL else min(number, max(number // _SHARE, _LEAST))
