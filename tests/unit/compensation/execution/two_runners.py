"""Model what a runner does at either target: take the lease, guard, ask, let the journal follow, go on, finish.

Two runners, A and B, work on two chunks. The models of the protocols add what is written at the target, and how.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeVar, cast

from tests.unit.compensation.execution.interleavings import Model

CHUNKS = 2
SLOTS = (0, 1)
NAMES = "AB"


class At(StrEnum):
    """The next step of a runner: those of both protocols, of Kafka's, and of PostgreSQL's."""

    OUT = "out"
    GUARD = "guard"
    ASK = "ask"
    RECOVER = "recover"
    GUARD_CHUNK = "guard chunk"
    COMMIT = "commit"
    FOLLOW = "follow"

    INIT = "init"
    PRODUCE = "records"
    OFFSETS = "marker"
    ABORT = "abort"

    LOCK = "lock"
    CHECK = "check"
    ROWS = "rows"
    RECEIPT = "receipt"
    COMMIT_RECEIPT = "commit receipt"


class TwoRunners(Hashable, Protocol):
    """A state: a named tuple with the runners, the effects of each chunk, the chunks in the journal, and the end."""

    @property
    def runners(self) -> tuple[Any, Any]: ...
    @property
    def copies(self) -> tuple[int, ...]: ...
    @property
    def journal(self) -> tuple[bool, ...]: ...
    @property
    def is_done(self) -> bool: ...


State = TypeVar("State", bound=TwoRunners)

LAWS: Mapping[str, Callable[[Any], bool]] = {
    "no chunk has two effects": lambda state: max(state.copies) <= 1,
    "done means one effect of each chunk": lambda state: not state.is_done or min(state.copies) == 1,
    "the journal never leads": lambda state: all(
        copies or not seen for copies, seen in zip(state.copies, state.journal, strict=True)
    ),
}


def protocol_model(start: State, moves: Callable[[State], Iterable[tuple[str, State]]]) -> Model[State]:
    """Return the model of a protocol by which each chunk takes effect once."""
    return Model(start=start, moves=moves, laws=LAWS, is_done=lambda state: state.is_done)


def moves_of_runner(
    state: State, slot: int, moves: Iterable[tuple[str, State]], crashed: Callable[[State, int], State]
) -> Iterator[tuple[str, State]]:
    """Yield a runner's moves under its name; it may also crash, unless it is out."""
    for label, following in moves:
        yield f"{NAMES[slot]} {label}", following
    if state.runners[slot].at is not At.OUT:
        yield f"{NAMES[slot]} crashes", crashed(state, slot)


def recovery(state: State, slot: int, done: int, *, is_held: bool, heeds_loss: bool = True) -> tuple[str, State]:
    """Copy receipts to the journal, then go on or finish; a target that has fewer than the journal stops the runner.

    `is_held`: the lease is the runner's. `heeds_loss` False: the runner does not look whether receipts were lost.
    """
    unrecorded = [chunk for chunk in range(done) if not state.journal[chunk]]
    if heeds_loss and done < state.journal.count(True):
        return "finds receipts lost", moved(state, slot, At.OUT)
    if unrecorded:
        return "recovers", recorded(state, unrecorded[0])
    if done < CHUNKS:
        return "goes on", moved(state, slot, At.GUARD_CHUNK)
    if is_held:
        return "finishes", moved(_changed(state, is_done=True), slot, At.OUT)
    return "has lost the lease", moved(state, slot, At.OUT)


def moved(state: State, slot: int, at: At, chunk: int | None = None) -> State:
    """Return the state with a runner at another step, and at `chunk` if it is given; one that is out is as new."""
    runner = state.runners[slot]
    if at is At.OUT:
        return put_runner(state, slot, type(runner)())
    return put_runner(state, slot, runner._replace(at=at, chunk=runner.chunk if chunk is None else chunk))


def put_runner(state: State, slot: int, runner: Any) -> State:
    """Return the state with another runner in a slot."""
    return _changed(state, runners=put(state.runners, slot, runner))


def recorded(state: State, chunk: int) -> State:
    """Return the state with a chunk in the journal."""
    return _changed(state, journal=put(state.journal, chunk, True))


def put(items: tuple[Any, ...], index: int, item: Any) -> Any:
    """Return the tuple with another item at one index."""
    return (*items[:index], item, *items[index + 1 :])


def _changed(state: State, **fields: Any) -> State:
    changed: State = cast(Any, state)._replace(**fields)
    return changed
