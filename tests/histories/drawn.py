"""Handle a drawn history of any kind: choose its kinds of events, write it down, make one that fails shorter."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import pytest


class Drawn(Protocol):
    """A history: a dataclass with its seed and its events."""

    @property
    def seed(self) -> int:
        """Return what it was drawn from."""

    @property
    def events(self) -> tuple[Any, ...]:
        """Return what happens, in order."""


H = TypeVar("H", bound=Drawn)


def kinds_asked_for(request: pytest.FixtureRequest, known: Mapping[str, bool]) -> frozenset[str]:
    """Return the kinds of events to draw: those of `--kinds`, or more (+) and less (-) than the default."""
    names = [name for name in request.config.getoption("kinds", default="").split(",") if name]
    if not all(name[0] in "+-" for name in names):
        return frozenset(names) & set(known)
    more, less = ({name[1:] for name in names if name[0] == sign} for sign in "+-")
    return frozenset(name for name, is_default in known.items() if (is_default or name in more) and name not in less)


class _EnoughError(Exception):
    """A window was answered wrongly."""


def played(play: Callable[[Callable[[list[str]], None]], None]) -> list[str]:
    """Play a history to its end, or to the first window that is answered wrongly; return what was wrong.

    `play` is given what it hands the differences of each window to. An error is a difference, too.
    """
    wrong: list[str] = []

    def check(differences: list[str]) -> None:
        wrong.extend(differences)
        if wrong:
            raise _EnoughError

    try:
        play(check)
    except _EnoughError:
        pass
    except Exception as error:
        wrong.append("".join(traceback.format_exception(error, limit=-8)))
    return wrong


def expect_right(
    history: H, wrong: list[str], play: Callable[[H], list[str]], stays: type, request: pytest.FixtureRequest
) -> None:
    """Fail with what was `wrong` in a history; with `--shrink`, in the least of it that is still wrong.

    `stays`: the events that are no trouble, and are never left out.
    """
    if wrong and request.config.getoption("shrink", default=False):
        history = shrunk(history, lambda shorter: bool(play(shorter)), stays)
        wrong = play(history)
    text = "\n".join(wrong)
    again = f'make histories HISTORIES_ARGS="--histories 1 --seed {history.seed}"'
    assert not wrong, f"{text}\n{written(history)}\nagain: {again}"


def written(history: Drawn) -> str:
    """Return the history as a person reads it who has to find out what went wrong."""
    head = ", ".join(f"{name}={value!r}" for name, value in vars(history).items() if name != "events")
    return "\n".join([head, *(f"  {number:3} {event}" for number, event in enumerate(history.events))])


def shrunk(history: H, fails: Callable[[H], bool], stays: type) -> H:
    """Leave out halves, quarters and at last single events that the failure does not need."""
    size = max(1, len(history.events) // 2)
    while size:
        at = 0
        while at < len(history.events):
            shorter = _without(history, at, at + size, stays)
            if len(shorter.events) < len(history.events) and fails(shorter):
                history = shorter
            else:
                at += size
        size //= 2
    return history


def _without(history: H, start: int, end: int, stays: type) -> H:
    events = tuple(
        event for at, event in enumerate(history.events) if not start <= at < end or isinstance(event, stays)
    )
    return replace(history, events=events)  # type: ignore[type-var]
