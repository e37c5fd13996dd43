"""Search every interleaving of a small model, breadth first, so that a violation is found by a shortest path.

Two properties are checked. Laws hold in every reachable state (safety). From every reachable state, one that is done
can still be reached (progress).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Model(Generic[State]):
    """A model to search. `moves` gives every (label, next state); `laws`, by name, must hold in every state."""

    start: State
    moves: Callable[[State], Iterable[tuple[str, State]]]
    laws: Mapping[str, Callable[[State], bool]]
    is_done: Callable[[State], bool]


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The result of a search. `broken`: the first law that does not hold; `path`: the moves to it."""

    states: int
    broken: str = ""
    path: tuple[str, ...] = ()


def search(model: Model[State]) -> SearchResult:
    """Visit every state that can be reached; stop at the first that breaks a law."""
    numbers = {model.start: 0}
    arrivals: list[tuple[int, str]] = [(-1, "")]
    predecessors: list[list[int]] = [[]]
    done: list[int] = []
    queue = [model.start]
    for number, state in enumerate(queue):
        for name, holds in model.laws.items():
            if not holds(state):
                return SearchResult(states=len(queue), broken=name, path=_path(arrivals, number))
        if model.is_done(state):
            done.append(number)
        for label, following in model.moves(state):
            index = numbers.setdefault(following, len(queue))
            if index == len(queue):
                queue.append(following)
                arrivals.append((number, label))
                predecessors.append([])
            predecessors[index].append(number)
    dead_end = _first_dead_end(predecessors, done)
    if dead_end is not None:
        return SearchResult(states=len(queue), broken="done can still be reached", path=_path(arrivals, dead_end))
    return SearchResult(states=len(queue))


def _first_dead_end(predecessors: list[list[int]], done: list[int]) -> int | None:
    """Return the first state from which none that is done can be reached, by a search back from those that are."""
    reaching = set(done)
    left = list(done)
    while left:
        for earlier in predecessors[left.pop()]:
            if earlier not in reaching:
                reaching.add(earlier)
                left.append(earlier)
    return next((number for number in range(len(predecessors)) if number not in reaching), None)


def _path(arrivals: list[tuple[int, str]], number: int) -> tuple[str, ...]:
    labels = []
    while number > 0:
        number, label = arrivals[number]
        labels.append(label)
    return tuple(reversed(labels))
