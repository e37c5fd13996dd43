"""Model two runners that apply two chunks to a table by the protocol of `makewhole.postgres.write.receipts`.

A session at the server outlives its runner: it keeps its transaction and its lock until the server notices, and a
commit that was sent may still be carried out then. The server also ends a session whose runner stands still in a
transaction. Epochs are kept as ranks, so that there are finitely many states however often the lease is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
    put_runner,
    recorded,
    recovery,
)

NONE = -1
LEFT = 2  # the slot of a session whose runner is gone


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of the protocol; each can be broken, to show what it is needed for."""

    locks_the_target: bool = True
    receipt_is_a_key: bool = True
    receipt_with_rows: bool = True
    checks_receipts_in_the_transaction: bool = True
    journal_follows: bool = True
    older_epochs_give_way: bool = True
    server_ends_sessions: bool = True


class Runner(NamedTuple):
    """A runner. `chunk`: the one that it writes next; `epoch`: that of its lease."""

    at: At = At.OUT
    chunk: int = 0
    epoch: int = 0


class Session(NamedTuple):
    """A transaction at the server, with what it has written so far. `is_committing`: the commit was sent."""

    chunk: int = NONE
    epoch: int = 0
    is_locking: bool = False
    has_rows: bool = False
    has_receipt: bool = False
    is_committing: bool = False


CLOSED = Session()


class State(NamedTuple):
    """The durable state, the runners and the sessions. `receipts` and `lease` are lease epochs; 0: none."""

    runners: tuple[Runner, Runner] = (Runner(), Runner())
    sessions: tuple[Session, Session, Session] = (CLOSED, CLOSED, CLOSED)
    lease: int = 0
    copies: tuple[int, ...] = (0,) * CHUNKS
    receipts: tuple[int, ...] = (0,) * CHUNKS
    journal: tuple[bool, ...] = (False,) * CHUNKS
    is_done: bool = False


Moves = Iterator[tuple[str, State]]


def postgres_model(rules: Rules) -> Model[State]:
    """Return the model of the protocol with these rules."""
    moves = _Moves(rules)
    return protocol_model(State(), lambda state: ((label, _ranked(following)) for label, following in moves.all(state)))


class _Moves:
    """The moves from a state, under the rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def all(self, state: State) -> Moves:
        for slot in SLOTS:
            yield from moves_of_runner(state, slot, self._runner(state, slot, state.runners[slot]), _left)
            if state.sessions[slot] != CLOSED and self._rules.server_ends_sessions:
                ended = _session(state, slot, CLOSED)
                yield f"the server ends the session of {NAMES[slot]}", moved(ended, slot, At.OUT)
        if state.sessions[LEFT] != CLOSED and self._rules.server_ends_sessions:
            yield "the server ends a session that was left", _session(state, LEFT, CLOSED)
        if state.sessions[LEFT].is_committing:
            yield "a late commit is carried out", self._committed(state, LEFT)

    def _runner(self, state: State, slot: int, runner: Runner) -> Moves:
        match runner.at:
            case At.OUT:
                taken = state._replace(lease=state.lease + 1)
                yield "takes the lease", put_runner(taken, slot, Runner(At.GUARD, 0, taken.lease))
            case At.GUARD:
                yield "guards", self._guarded(state, slot, At.ASK)
            case At.ASK:
                done = sum(bool(receipt) for receipt in state.receipts)
                yield f"hears of {done} chunks", moved(state, slot, At.RECOVER, done)
            case At.RECOVER:
                yield recovery(state, slot, runner.chunk, is_held=state.lease == runner.epoch)
            case At.GUARD_CHUNK:
                begun = state if self._rules.journal_follows else recorded(state, runner.chunk)
                yield "guards", self._guarded(begun if state.lease == runner.epoch else state, slot, At.LOCK)
            case At.FOLLOW:
                yield "follows", moved(recorded(state, runner.chunk), slot, At.RECOVER, runner.chunk + 1)
            case _:
                yield from self._transaction(state, slot, runner)

    def _guarded(self, state: State, slot: int, then: At) -> State:
        return moved(state, slot, then if state.lease == state.runners[slot].epoch else At.OUT)

    def _transaction(self, state: State, slot: int, runner: Runner) -> Moves:
        mine = state.sessions[slot]
        match runner.at:
            case At.LOCK:
                if not self._rules.locks_the_target or not any(session.is_locking for session in state.sessions):
                    begun = Session(runner.chunk, runner.epoch, is_locking=self._rules.locks_the_target)
                    then = At.CHECK if self._rules.checks_receipts_in_the_transaction else At.ROWS
                    yield "locks", moved(_session(state, slot, begun), slot, then)
            case At.CHECK:
                yield self._check(state, slot, runner)
            case At.ROWS:
                then = At.RECEIPT if self._rules.receipt_with_rows else At.COMMIT
                yield "writes rows", moved(_session(state, slot, mine._replace(has_rows=True)), slot, then)
            case At.RECEIPT:
                yield from self._receipt(state, slot, runner)
            case At.COMMIT | At.COMMIT_RECEIPT:
                yield from self._commit(state, slot, runner)

    def _check(self, state: State, slot: int, runner: Runner) -> tuple[str, State]:
        """Check under the lock: a newer runner's receipt stops this one; a receipt of this chunk: it is done."""
        ended = _session(state, slot, CLOSED)
        if self._rules.older_epochs_give_way and max(state.receipts) > runner.epoch:
            return "meets a newer runner's receipt", moved(ended, slot, At.OUT)
        if state.receipts[runner.chunk]:
            return "finds it done", moved(ended, slot, At.FOLLOW)
        return "finds it open", moved(state, slot, At.ROWS)

    def _receipt(self, state: State, slot: int, runner: Runner) -> Moves:
        others = [session for other, session in enumerate(state.sessions) if other != slot]
        if self._rules.receipt_is_a_key:
            if state.receipts[runner.chunk]:
                yield "is refused: receipt", moved(_session(state, slot, CLOSED), slot, At.OUT)
                return
            if any(other.has_receipt and other.chunk == runner.chunk for other in others):
                return  # it waits until the other one has ended
        mine = (
            state.sessions[slot]
            if self._rules.receipt_with_rows
            else Session(runner.chunk, runner.epoch, is_locking=self._rules.locks_the_target)
        )
        then = At.COMMIT if self._rules.receipt_with_rows else At.COMMIT_RECEIPT
        yield "writes the receipt", moved(_session(state, slot, mine._replace(has_receipt=True)), slot, then)

    def _commit(self, state: State, slot: int, runner: Runner) -> Moves:
        then = At.RECEIPT if not self._rules.receipt_with_rows and runner.at is At.COMMIT else At.FOLLOW
        done = self._committed(state, slot)
        yield "commits", moved(done, slot, then)
        yield "commits, unanswered", moved(done, slot, At.OUT)
        yield "commit is lost", moved(_session(state, slot, CLOSED), slot, At.OUT)
        late = state.sessions[slot]._replace(is_committing=True)
        yield "commit is late", _left(_session(state, slot, late), slot)

    def _committed(self, state: State, slot: int) -> State:
        session = state.sessions[slot]
        if session.has_rows:
            state = state._replace(copies=put(state.copies, session.chunk, state.copies[session.chunk] + 1))
        if session.has_receipt:
            state = state._replace(receipts=put(state.receipts, session.chunk, session.epoch))
        return _session(state, slot, CLOSED)


def _left(state: State, slot: int) -> State:
    """End a runner and keep its session; of two such sessions the server has ended the older one."""
    if state.sessions[slot] != CLOSED:
        state = _session(_session(state, LEFT, state.sessions[slot]), slot, CLOSED)
    return moved(state, slot, At.OUT)


def _session(state: State, slot: int, session: Session) -> State:
    return state._replace(sessions=put(state.sessions, slot, session))


def _ranked(state: State) -> State:
    """Renumber the epochs of a state from 1 in their order: only their order matters."""
    used = {state.lease, *state.receipts}
    used |= {runner.epoch for runner in state.runners} | {session.epoch for session in state.sessions} | {0}
    if max(used) == len(used) - 1:
        return state
    rank = {epoch: number for number, epoch in enumerate(sorted(used))}
    first, second = (runner._replace(epoch=rank[runner.epoch]) for runner in state.runners)
    of_first, of_second, left = (session._replace(epoch=rank[session.epoch]) for session in state.sessions)
    return state._replace(
        lease=rank[state.lease],
        receipts=tuple(rank[epoch] for epoch in state.receipts),
        runners=(first, second),
        sessions=(of_first, of_second, left),
    )
