"""Model two runners that apply two chunks to a table by the protocol of `makewhole.postgres.write.receipts`.

A session at the server outlives its runner: it keeps its transaction and its lock until the server notices, and a
commit that was sent may still be carried out then. The server also ends a session whose runner stands still in a
transaction. Epochs are kept as ranks, so that there are finitely many states however often the lease is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.unit.compensation.execution.interleavings import LAWS, Model, put

CHUNKS = 2
NONE = -1
LEFT = 2  # the slot of a session whose runner is gone


class At(StrEnum):
    """The next step of a runner."""

    OUT = "out"
    GUARD = "guard"
    ASK = "ask"
    RECOVER = "recover"
    GUARD_CHUNK = "guard chunk"
    LOCK = "lock"
    CHECK = "check"
    ROWS = "rows"
    RECEIPT = "receipt"
    COMMIT = "commit"
    COMMIT_RECEIPT = "commit receipt"
    FOLLOW = "follow"


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
    return Model(
        start=State(),
        moves=lambda state: ((label, _ranked(following)) for label, following in _Moves(rules).all(state)),
        laws=LAWS,
        is_done=lambda state: state.is_done,
    )


class _Moves:
    """The moves from a state, under the rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def all(self, state: State) -> Moves:
        for slot in (0, 1):
            name = "AB"[slot]
            for label, following in self._runner(state, slot, state.runners[slot]):
                yield f"{name} {label}", following
            if state.runners[slot].at is not At.OUT:
                yield f"{name} crashes", _left(state, slot)
            if state.sessions[slot] != CLOSED and self._rules.server_ends_sessions:
                ended = _session(state, slot, CLOSED)
                yield f"the server ends the session of {name}", _moved(ended, slot, At.OUT)
        if state.sessions[LEFT] != CLOSED and self._rules.server_ends_sessions:
            yield "the server ends a session that was left", _session(state, LEFT, CLOSED)
        if state.sessions[LEFT].is_committing:
            yield "a late commit is carried out", self._committed(state, LEFT)

    def _runner(self, state: State, slot: int, runner: Runner) -> Moves:
        match runner.at:
            case At.OUT:
                taken = state._replace(lease=state.lease + 1)
                yield "takes the lease", _put_runner(taken, slot, Runner(At.GUARD, 0, taken.lease))
            case At.GUARD:
                yield "guards", self._guarded(state, slot, At.ASK)
            case At.ASK:
                done = sum(bool(receipt) for receipt in state.receipts)
                yield f"hears of {done} chunks", _moved(state, slot, At.RECOVER, done)
            case At.RECOVER:
                yield self._recover(state, slot, runner.chunk)
            case At.GUARD_CHUNK:
                begun = state if self._rules.journal_follows else _recorded(state, runner.chunk)
                yield "guards", self._guarded(begun if state.lease == runner.epoch else state, slot, At.LOCK)
            case At.FOLLOW:
                yield "follows", _moved(_recorded(state, runner.chunk), slot, At.RECOVER, runner.chunk + 1)
            case _:
                yield from self._transaction(state, slot, runner)

    def _guarded(self, state: State, slot: int, then: At) -> State:
        return _moved(state, slot, then if state.lease == state.runners[slot].epoch else At.OUT)

    def _recover(self, state: State, slot: int, done: int) -> tuple[str, State]:
        unrecorded = [chunk for chunk in range(done) if not state.journal[chunk]]
        if done < state.journal.count(True):
            return "finds receipts lost", _moved(state, slot, At.OUT)
        if unrecorded:
            return "recovers", _recorded(state, unrecorded[0])
        if done < CHUNKS:
            return "goes on", _moved(state, slot, At.GUARD_CHUNK)
        is_held = state.lease == state.runners[slot].epoch
        return "finishes", _moved(state._replace(is_done=state.is_done or is_held), slot, At.OUT)

    def _transaction(self, state: State, slot: int, runner: Runner) -> Moves:
        mine = state.sessions[slot]
        match runner.at:
            case At.LOCK:
                if not self._rules.locks_the_target or not any(session.is_locking for session in state.sessions):
                    begun = Session(runner.chunk, runner.epoch, is_locking=self._rules.locks_the_target)
                    then = At.CHECK if self._rules.checks_receipts_in_the_transaction else At.ROWS
                    yield "locks", _moved(_session(state, slot, begun), slot, then)
            case At.CHECK:
                yield self._check(state, slot, runner)
            case At.ROWS:
                then = At.RECEIPT if self._rules.receipt_with_rows else At.COMMIT
                yield "writes rows", _moved(_session(state, slot, mine._replace(has_rows=True)), slot, then)
            case At.RECEIPT:
                yield from self._receipt(state, slot, runner)
            case At.COMMIT | At.COMMIT_RECEIPT:
                yield from self._commit(state, slot, runner)

    def _check(self, state: State, slot: int, runner: Runner) -> tuple[str, State]:
        """Check under the lock: a newer runner's receipt stops this one; a receipt of this chunk: it is done."""
        ended = _session(state, slot, CLOSED)
        if self._rules.older_epochs_give_way and max(state.receipts) > runner.epoch:
            return "meets a newer runner's receipt", _moved(ended, slot, At.OUT)
        if state.receipts[runner.chunk]:
            return "finds it done", _moved(ended, slot, At.FOLLOW)
        return "finds it open", _moved(state, slot, At.ROWS)

    def _receipt(self, state: State, slot: int, runner: Runner) -> Moves:
        others = [session for other, session in enumerate(state.sessions) if other != slot]
        if self._rules.receipt_is_a_key:
            if state.receipts[runner.chunk]:
                yield "is refused: receipt", _moved(_session(state, slot, CLOSED), slot, At.OUT)
                return
            if any(other.has_receipt and other.chunk == runner.chunk for other in others):
                return  # it waits until the other one has ended
        mine = (
            state.sessions[slot]
            if self._rules.receipt_with_rows
            else Session(runner.chunk, runner.epoch, is_locking=self._rules.locks_the_target)
        )
        then = At.COMMIT if self._rules.receipt_with_rows else At.COMMIT_RECEIPT
        yield "writes the receipt", _moved(_session(state, slot, mine._replace(has_receipt=True)), slot, then)

    def _commit(self, state: State, slot: int, runner: Runner) -> Moves:
        then = At.RECEIPT if not self._rules.receipt_with_rows and runner.at is At.COMMIT else At.FOLLOW
        done = self._committed(state, slot)
        yield "commits", _moved(done, slot, then)
        yield "commits, unanswered", _moved(done, slot, At.OUT)
        yield "commit is lost", _moved(_session(state, slot, CLOSED), slot, At.OUT)
        late = state.sessions[slot]._replace(is_committing=True)
        yield "commit is late", _left(_session(state, slot, late), slot)

    def _committed(self, state: State, slot: int) -> State:
        session = state.sessions[slot]
        if session.has_rows:
            state = state._replace(copies=put(state.copies, session.chunk, state.copies[session.chunk] + 1))
        if session.has_receipt:
            state = state._replace(receipts=put(state.receipts, session.chunk, session.epoch))
        return _session(state, slot, CLOSED)


def _moved(state: State, slot: int, at: At, chunk: int | None = None) -> State:
    runner = state.runners[slot]
    if at is At.OUT:
        return _put_runner(state, slot, Runner())
    return _put_runner(state, slot, Runner(at, runner.chunk if chunk is None else chunk, runner.epoch))


def _left(state: State, slot: int) -> State:
    """End a runner and keep its session; of two such sessions the server has ended the older one."""
    if state.sessions[slot] != CLOSED:
        state = _session(_session(state, LEFT, state.sessions[slot]), slot, CLOSED)
    return _moved(state, slot, At.OUT)


def _session(state: State, slot: int, session: Session) -> State:
    return state._replace(sessions=put(state.sessions, slot, session))


def _put_runner(state: State, slot: int, runner: Runner) -> State:
    return state._replace(runners=put(state.runners, slot, runner))


def _recorded(state: State, chunk: int) -> State:
    return state._replace(journal=put(state.journal, chunk, True))


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
