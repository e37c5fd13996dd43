"""Make a history that fails shorter, as long as it still fails."""

from collections.abc import Callable
from dataclasses import replace

from tests.histories.events import History, Step


def shrunk(history: History, fails: Callable[[History], bool]) -> History:
    """Leave out halves, quarters and at last single events that the failure does not need; steps stay."""
    size = max(1, len(history.events) // 2)
    while size:
        at = 0
        while at < len(history.events):
            shorter = _without(history, at, at + size)
            if len(shorter.events) < len(history.events) and fails(shorter):
                history = shorter
            else:
                at += size
        size //= 2
    return history


def _without(history: History, start: int, end: int) -> History:
    kept = [event for at, event in enumerate(history.events) if not start <= at < end or isinstance(event, Step)]
    return replace(history, events=tuple(kept))
