"""Order tests so that those that share an expensive start are begun by one process and not by each."""

import os
from collections.abc import Callable, Sequence

import pytest

_PROCESSES = "PYTEST_XDIST_WORKER_COUNT"


def with_shared_starts(
    items: Sequence[pytest.Item], groups: Sequence[Callable[[pytest.Item], bool]]
) -> list[pytest.Item]:
    """Return all items, each group at the beginning of what one process is given.

    `--dist worksteal` gives each process an equal stretch of the list, and takes from the end of the longest one for
    those that are done. An item belongs to the first group that says so.
    """
    processes = int(os.environ.get(_PROCESSES, "1"))
    together = [list[pytest.Item]() for _ in groups]
    others = list[pytest.Item]()
    for item in items:
        place = next((number for number, belongs in enumerate(groups) if belongs(item)), None)
        (others if place is None else together[place]).append(item)
    ordered = list[pytest.Item]()
    for number in range(processes):
        stretch = [item for group in together[number::processes] for item in group]
        room = max(0, (len(items) - len(ordered)) // (processes - number) - len(stretch))
        ordered += stretch + others[:room]
        del others[:room]
    return ordered + others
