"""Collect what stands in the way of a window, whichever part of the service finds it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from makewhole.model.errors import ConfigurationError, MakewholeError, Problem, TransientError
from makewhole.model.text import counted


class Weight(StrEnum):
    """How much a mistake weighs."""

    WRONG = "wrong"
    """A person has to correct it: no retry helps."""
    AWAY = "away"
    """A system did not answer: it may when it is asked again."""
    REPAIRS = "repairs"
    """A window is judged, and what it finds cannot be repaired as the file says: a right to write is missing."""
    ADVICE = "advice"
    """A window is judged in spite of it."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A problem with its weight."""

    problem: Problem
    weight: Weight


@dataclass(kw_only=True)
class Readiness:
    """The things that were asked, by name, those that were not as needed (`failed`), the mistakes among them, and what
    could not be asked here, with why."""

    asked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    not_asked: list[str] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is wrong, what is found can be repaired, and everything answered."""
        return all(mistake.weight is Weight.ADVICE for mistake in self.mistakes)

    def of(self, weight: Weight) -> tuple[Problem, ...]:
        """Return the problems of one weight, each once."""
        return tuple(dict.fromkeys(mistake.problem for mistake in self.mistakes if mistake.weight is weight))

    def note(self, problem: Problem, weight: Weight = Weight.WRONG) -> None:
        """Add a problem."""
        self.mistakes.append(Mistake(problem=problem, weight=weight))

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as JSON, for `add`."""
        return dict(msgspec.to_builtins(self))

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add what was asked elsewhere, as its `to_json_dict` has it."""
        other = msgspec.convert(answer, Readiness)
        self.asked += other.asked
        self.failed += other.failed
        self.mistakes += other.mistakes
        self.not_asked += other.not_asked

    @contextmanager
    def asking(self, thing: str, place: str, remedy: str = "Correct what it names, then check again") -> Iterator[None]:
        """Run a block that asks for a thing: our errors in it become problems. `place`: where it is configured."""
        self.asked.append(thing)
        known = len(self.mistakes)
        try:
            yield
        except ConfigurationError as error:
            for problem in error.problems:
                self.note(problem)
        except TransientError as error:
            again = "Start it, or correct the connection; then check again"
            self.note(Problem(file=thing, path=place, found=str(error), remedy=again), Weight.AWAY)
        except MakewholeError as error:
            self.note(Problem(file=thing, path=place, found=str(error), remedy=remedy))
        if len(self.mistakes) > known:
            self.failed.append(thing)

    def require(self) -> None:
        """Return where a window can be judged.

        Raises:
            ConfigurationError: something is wrong; with all of it, and with what did not answer besides.
            TransientError: nothing is wrong, and something did not answer.
        """
        wrong, away = self.of(Weight.WRONG), self.of(Weight.AWAY)
        if wrong:
            raise NotReadyError([*wrong, *away])
        if away:
            raise TransientError("; ".join(f"{problem.file}: {problem.found}" for problem in away))


class NotReadyError(ConfigurationError):
    """A pipeline of which no window can be judged. Its message is a list, whose last line is how many things to mend
    and how to see them again."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.args = (f"{listed(problems)}\n{summary(problems)}",)


def listed(problems: Iterable[Problem]) -> str:
    """Return problems as numbered lines."""
    return "\n".join(f"{number}. {problem}" for number, problem in enumerate(problems, start=1))


def summary(problems: Sequence[Problem]) -> str:
    """Return in a line how many problems there are, the first of them, and the next step."""
    first = problems[0]
    more, them = (f", and {len(problems) - 1} more", "them") if len(problems) > 1 else ("", "it")
    return (
        f"{counted(len(problems), 'thing')} to mend before a window can be judged: {first.file}: {first.path}: "
        f"{first.found}{more}. Mend {them}, see that `makewhole check --live` finds no other, and run it again"
    )
