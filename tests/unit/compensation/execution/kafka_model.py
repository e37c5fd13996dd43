"""Model two runners that replay two chunks into a topic by the protocol of `makewhole.kafka.replay`.

A runner may stop for ever or crash between any two steps; a stopped one that continues later is a zombie. Its lease may
be taken at any moment: by a retry with the same holder, or by another holder after it expired. What a producer sends is
answered, refused, lost, done without an answer, or done much later: then the runner does not know the outcome.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.unit.compensation.execution.interleavings import Model
from tests.unit.compensation.execution.two_runners import (
    CHUNKS,
    NAMES,
    SLOTS,
    At,
    moved,
    moves_of_runner,
    protocol_model,
    put,
    recorded,
    recovery,
)

NO_RUNNER = -1
LOST = -1  # a marker that is not there: never written, or expired


class WhenUnknown(StrEnum):
    """Name what a runner does when it does not know whether its transaction was committed. `believe`: abort, and take a
    refusal of that for the proof that it was."""

    OPEN_AGAIN = "open again"
    ABORT = "abort"
    BELIEVE = "abort and believe"


class WhenLost(StrEnum):
    """Model what a runner does when the marker is missing."""

    RESCAN = "rescan"
    NOTHING_DONE = "nothing done"
    STOP = "stop"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of the protocol; each can be broken, to show what it is needed for."""

    init_fences: bool = True
    asks_after_init: bool = True
    journal_follows: bool = True
    when_unknown: WhenUnknown = WhenUnknown.OPEN_AGAIN
    marker_in_transaction: bool = True
    when_lost: WhenLost = WhenLost.RESCAN
    guards_the_lease: bool = True


class Runner(NamedTuple):
    """A runner. `chunk`: the one that it writes next."""

    at: At = At.OUT
    chunk: int = 0


class Transaction(NamedTuple):
    """An open transaction of a producer: the chunks of its records, and the marker (0: not yet)."""

    chunks: tuple[int, ...] = ()
    marker: int = 0


class Request(NamedTuple):
    """A request of a producer to the brokers: to append a chunk's records, to write a marker, to commit."""

    what: At
    chunk: int = 0


class State(NamedTuple):
    """The durable state and the runners. `late`: requests that were not carried out yet, by their runner."""

    runners: tuple[Runner, Runner] = (Runner(), Runner())
    lease: int = NO_RUNNER
    valid: tuple[bool, bool] = (False, False)
    open: tuple[Transaction, Transaction] = (Transaction(), Transaction())
    late: frozenset[tuple[int, Request]] = frozenset()
    copies: tuple[int, ...] = (0,) * CHUNKS
    marker: int = LOST
    journal: tuple[bool, ...] = (False,) * CHUNKS
    is_done: bool = False


Moves = Iterator[tuple[str, State]]


def kafka_model(rules: Rules) -> Model[State]:
    """Return the model of the protocol with these rules."""
    return protocol_model(State(), _Moves(rules).all)


class _Moves:
    """The moves from a state, under the rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def all(self, state: State) -> Moves:
        for slot in SLOTS:
            yield from moves_of_runner(state, slot, self._runner(state, slot, state.runners[slot].at), _crashed)
            if state.valid[slot]:
                yield f"transaction of {NAMES[slot]} times out", _fenced(state, slot)
        for slot, request in sorted(state.late):
            rest = state._replace(late=state.late - {(slot, request)})
            yield f"late {request.what} of {NAMES[slot]} arrives", self._applied(rest, slot, request)
        if state.marker != LOST:
            yield "the marker expires", state._replace(marker=LOST)

    def _runner(self, state: State, slot: int, at: At) -> Moves:
        chunk = state.runners[slot].chunk
        match at:
            case At.OUT:
                yield "takes the lease", moved(state._replace(lease=slot), slot, At.GUARD)
            case At.GUARD:
                first = At.INIT if self._rules.asks_after_init else At.ASK
                yield "guards", moved(state, slot, first if self._may_go_on(state, slot) else At.OUT)
            case At.INIT:
                then = At.ASK if self._rules.asks_after_init else At.RECOVER
                opened = self._opened(state, slot)
                yield "opens", moved(opened, slot, then)
                yield "opens, unanswered", moved(opened, slot, At.GUARD)
            case At.ASK:
                yield from self._ask(state, slot)
            case At.RECOVER:
                yield recovery(
                    state,
                    slot,
                    chunk,
                    is_held=self._may_go_on(state, slot),
                    heeds_loss=self._rules.when_lost is not WhenLost.NOTHING_DONE,
                )
            case At.GUARD_CHUNK:
                yield "guards", moved(*self._chunk_begun(state, slot, chunk))
            case At.PRODUCE | At.OFFSETS | At.COMMIT:
                yield from self._send(state, slot, Request(at, chunk))
            case At.ABORT:
                yield self._abort(state, slot)
            case At.FOLLOW:
                yield "follows", moved(self._followed(state, chunk), slot, At.RECOVER, chunk + 1)

    def _may_go_on(self, state: State, slot: int) -> bool:
        return state.lease == slot or not self._rules.guards_the_lease

    def _opened(self, state: State, slot: int) -> State:
        """Apply `init_transactions`: it fences and aborts earlier producers of the transactional id."""
        state = _fenced(state, slot)
        if self._rules.init_fences:
            state = _fenced(state, 1 - slot)
        return state._replace(valid=put(state.valid, slot, True))

    def _ask(self, state: State, slot: int) -> Moves:
        if any(transaction.marker for transaction in state.open):
            return  # a reader of committed offsets waits for the transaction that holds one
        done = state.marker
        if done == LOST:
            done = _rescanned(state) if self._rules.when_lost is WhenLost.RESCAN else 0
        then = At.RECOVER if self._rules.asks_after_init else At.INIT
        yield f"hears of {done} chunks", moved(state, slot, then, done)

    def _chunk_begun(self, state: State, slot: int, chunk: int) -> tuple[State, int, At]:
        if not self._may_go_on(state, slot):
            return state, slot, At.OUT
        return (state if self._rules.journal_follows else recorded(state, chunk)), slot, At.PRODUCE

    def _send(self, state: State, slot: int, request: Request) -> Moves:
        """Send one request. After any failure the runner opens a new producer: it never guesses."""
        what = request.what
        is_aborting = what is At.COMMIT and self._rules.when_unknown is not WhenUnknown.OPEN_AGAIN
        failed = At.ABORT if is_aborting else At.GUARD
        if not state.valid[slot]:
            yield f"is refused {what}", moved(state, slot, At.GUARD)
            return
        applied = self._applied(state, slot, request)
        yield f"sends {what}", moved(applied, slot, self._after(what))
        yield f"sends {what}, unanswered", moved(applied, slot, failed)
        yield f"sends {what}, lost", moved(state, slot, failed)
        yield f"sends {what}, late", moved(state._replace(late=state.late | {(slot, request)}), slot, failed)

    def _abort(self, state: State, slot: int) -> tuple[str, State]:
        """Abort with the same producer, which a late commit can still reach."""
        if not state.valid[slot]:
            return "is refused abort", moved(state, slot, At.GUARD)
        if state.open[slot] == Transaction() and self._rules.when_unknown is WhenUnknown.BELIEVE:
            return "takes it for committed", moved(state, slot, At.FOLLOW)
        aborted = state._replace(open=put(state.open, slot, Transaction()))
        return "aborts", moved(aborted, slot, At.GUARD_CHUNK)

    def _after(self, what: At) -> At:
        if what is At.PRODUCE:
            return At.OFFSETS if self._rules.marker_in_transaction else At.COMMIT
        return At.COMMIT if what is At.OFFSETS and self._rules.marker_in_transaction else At.FOLLOW

    def _applied(self, state: State, slot: int, request: Request) -> State:
        """Carry out a request of a producer that is not fenced."""
        if not state.valid[slot]:
            return state
        mine = state.open[slot]
        match request.what:
            case At.PRODUCE:
                mine = mine._replace(chunks=(*mine.chunks, request.chunk))
            case At.OFFSETS:
                mine = mine._replace(marker=request.chunk + 1)
            case _:
                state = state._replace(
                    copies=tuple(n + mine.chunks.count(chunk) for chunk, n in enumerate(state.copies)),
                    marker=mine.marker or state.marker,
                )
                mine = Transaction()
        return state._replace(open=put(state.open, slot, mine))

    def _followed(self, state: State, chunk: int) -> State:
        if not self._rules.marker_in_transaction:
            state = state._replace(marker=chunk + 1)
        return recorded(state, chunk)


def _rescanned(state: State) -> int:
    """Return the number of chunks in the log, by the lineage headers of its committed records."""
    return next((chunk for chunk, copies in enumerate(state.copies) if not copies), CHUNKS)


def _crashed(state: State, slot: int) -> State:
    return moved(state, slot, At.OUT)


def _fenced(state: State, slot: int) -> State:
    """Fence a producer: the coordinator aborts its transaction and refuses whatever it still sends."""
    return state._replace(
        valid=put(state.valid, slot, False),
        open=put(state.open, slot, Transaction()),
        late=frozenset(item for item in state.late if item[0] != slot),
    )
