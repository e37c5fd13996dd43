"""A search through every interleaving of a small model: breadth first, so what is wrong is found by a shortest way.

Two things are asked. Laws hold in every state that can be reached. And nobody is ever lost: from every such state one
that is done can still be reached, whatever happened before.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Model(Generic[State]):
    """`moves` gives every (label, next state); `laws` say by name what must be true of a state."""

    start: State
    moves: Callable[[State], Iterable[tuple[str, State]]]
    laws: Mapping[str, Callable[[State], bool]]
    is_done: Callable[[State], bool]


class Effects(Protocol):
    """What every model keeps of its chunks: their effects, whether the journal has seen them, the end."""

    copies: tuple[int, ...]
    journal: tuple[bool, ...]
    is_done: bool


LAWS: Mapping[str, Callable[[Effects], bool]] = {
    "no chunk has two effects": lambda state: max(state.copies) <= 1,
    "done means one effect of each chunk": lambda state: not state.is_done or min(state.copies) == 1,
    "the journal never leads": lambda state: all(
        copies or not seen for copies, seen in zip(state.copies, state.journal, strict=True)
    ),
}


@dataclass(frozen=True, kw_only=True)
class Searched:
    """`broken` is the first law that does not hold, `way` how one comes there; both empty when all is well."""

    states: int
    broken: str = ""
    way: tuple[str, ...] = ()


def search(model: Model[State]) -> Searched:
    """Visit every state that can be reached; stop at the first that breaks a law."""
    found = {model.start: 0}
    came: list[tuple[int, str]] = [(-1, "")]
    before: list[list[int]] = [[]]
    done: list[int] = []
    queue = [model.start]
    for number, state in enumerate(queue):
        for name, holds in model.laws.items():
            if not holds(state):
                return Searched(states=len(queue), broken=name, way=_way(came, number))
        if model.is_done(state):
            done.append(number)
        for label, following in model.moves(state):
            place = found.setdefault(following, len(queue))
            if place == len(queue):
                queue.append(following)
                came.append((number, label))
                before.append([])
            before[place].append(number)
    lost = _first_without_a_way(before, done)
    if lost is not None:
        return Searched(states=len(queue), broken="done can still be reached", way=_way(came, lost))
    return Searched(states=len(queue))


def _first_without_a_way(before: list[list[int]], done: list[int]) -> int | None:
    """The first state from which none that is done can be reached, found by going back from those."""
    reaching = set(done)
    left = list(done)
    while left:
        for earlier in before[left.pop()]:
            if earlier not in reaching:
                reaching.add(earlier)
                left.append(earlier)
    return next((number for number in range(len(before)) if number not in reaching), None)


def _way(came: list[tuple[int, str]], number: int) -> tuple[str, ...]:
    labels = []
    while number > 0:
        number, label = came[number]
        labels.append(label)
    return tuple(reversed(labels))


def put(items: tuple[Any, ...], place: int, item: Any) -> Any:
    """The same tuple with another item at one place."""
    return (*items[:place], item, *items[place + 1 :])
