"""Name the Spark steps of a window in their order. Imports nothing, so that an application can begin with it."""

from collections.abc import Sequence

SNAPSHOT, RECONCILE, VALIDATE = "snapshot", "reconcile", "validate"
PUBLISH = "publish"
"""The step of an application of its own: a window is certified before it."""
STEPS: Sequence[str] = (SNAPSHOT, RECONCILE, VALIDATE)


def steps_through(first: str, last: str) -> Sequence[str]:
    """Return the steps from one to another, both included; the first alone where the other comes before it."""
    if first not in STEPS:
        return (first,)
    return STEPS[STEPS.index(first) : max(STEPS.index(last), STEPS.index(first)) + 1]
