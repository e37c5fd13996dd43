"""Draw a history from a seed: days of orders, what goes wrong with them, and the window of each day."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.changes import CHANGES
from tests.histories.events import (
    STEPS,
    Begin,
    End,
    Ending,
    Erase,
    Event,
    History,
    Insert,
    Item,
    Load,
    Mishap,
    Retain,
    Send,
    Step,
    Stray,
)
from tests.histories.wrong_clocks import WrongClocks

KINDS = {
    "loss": True,  # a record is never sent, a loader leaves one out
    "duplicate": True,  # sent twice, loaded twice
    "changed": True,  # another amount in the topic, or in the store
    "loader_dies": True,  # between writing and committing, or the other way round
    "transactions": True,  # committed and aborted
    "open_at_the_cut": True,  # a transaction is open while a window is judged
    "late": True,  # sent on the day after, where nothing has been repaired meanwhile
    "repeated_later": True,  # an old key is sent again, on a later day
    "stray": True,  # rows that no record says
    "unasked": True,  # records that no ledger row says
    "retention": True,  # the log loses what windows have read
    "approval": True,  # plans wait for a person
    "killed": True,  # a step dies at a commit of the journal, and is tried again
    "expired": True,  # the log loses what no window has read
    "late_rows": True,  # ledger rows with a time of a day that was judged
    "lagging": True,  # the loader of a named group comes a day late
    "meanwhile": True,  # what is missing arrives between a window's steps
    "erased": True,  # rows of the store are deleted
    "late_originals": True,  # sent on the day after, when a repair has sent it already
    "conflicting": True,  # copies of one key differ: sent again with another amount, or loaded again rightly
    "contradicting": True,  # the ledger has a key twice, with different amounts
    "filter": True,  # the store takes one region alone
    "named": True,  # keys are erased on purpose, and a table says so
    "waiting": True,  # the loader stops for good, and longer passes than a key may stay pending
    "fulfilled": True,  # another system changes a column that nothing compares
    "clocks": True,  # of producers, of the ledger, of the store: minutes, days, or the whole of time off
}
"""The kinds of events, and whether they are drawn when none is named."""

_WINDOWS = 5
_SHARE = 0.12
_FAULTS = {"loss", "duplicate", "changed", "loader_dies", "stray", "unasked"}
_TROUBLES = (0.0, 0.2, 0.2, 1.0)  # a quiet day must be certified, and a wild one seldom can be


def draw(seed: int, kinds: frozenset[str] | None = None) -> History:
    """Draw the history of a seed; `kinds`: those of `KINDS` that may happen, the default ones if None."""
    kinds = default_kinds() if kinds is None else kinds
    clocks = WrongClocks(Random(f"clocks {seed}"), "clocks" in kinds)
    history = _Draw(Random(seed), kinds, clocks).history(seed)
    for kind, change in CHANGES.items():
        history = change(history, Random(f"{kind} {seed}")) if kind in kinds else history
    return history


def default_kinds() -> frozenset[str]:
    """Return the kinds that are drawn when none is named."""
    return frozenset(kind for kind, is_default in KINDS.items() if is_default)


@dataclass
class _Draw:
    """The state of a drawing: what has been made so far."""

    random: Random
    kinds: frozenset[str]
    clocks: WrongClocks
    minute: int = 0
    number: int = 0
    known: list[Item] = field(default_factory=list)
    late: list[Item] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    arrived: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    is_repairing: bool = False
    trouble: float = 1.0
    is_open: bool = False

    def history(self, seed: int) -> History:
        choice = self.random.choice
        asks = self._happens("approval", 0.3)
        self.is_repairing = self.random.random() < 0.75
        return History(
            seed=seed,
            partitions=choice([1, 1, 2, 3]),
            has_group=choice([False, True]),
            is_repairing=self.is_repairing,
            store_missing=choice(["redeliver", "upsert"]),
            store_mismatched=choice(["report", "upsert"]),
            asks=asks,
            answer=choice(["approved", "approved", "rejected", "none"]) if asks else "none",
            events=tuple(event for window in range(_WINDOWS) for event in self._day(window)),
        )

    # A day

    def _day(self, day: int) -> Iterator[Event]:
        self.trouble = self.random.choice(_TROUBLES)
        yield from self._morning(day)
        batches = [self._items(day) for _ in range(self.random.randint(1, 3))]
        for batch in batches:
            yield from self._inserted(batch)
            yield from self._sent(batch, day)
            if self.random.random() < 0.6:
                yield self._load(day, batch)
        yield from self._repeats(day)
        if self.is_open and not self._happens("open_at_the_cut", 0.6):
            yield self._end()
        if not self._happens("lagging", 0.3):
            yield self._load(day, [item for batch in batches for item in batch])
        yield from self._strays(day)
        yield from self._window(day)

    def _morning(self, day: int) -> Iterator[Event]:
        if day and self._happens("retention", 0.2):
            yield Retain()
        elif day and self._happens("expired", 0.15):
            yield Retain(self.random.randint(1, 4))
        if self.is_open and self.random.random() < 0.7:
            yield self._end()
        if self.late:
            yield Send(tuple(self.late), minutes=self.clocks.of_producer())
            self.late.clear()

    def _items(self, day: int) -> list[Item]:
        return [self._new(f"K{self._next()}", day) for _ in range(self.random.randint(1, 5))]

    def _new(self, key: str, day: int) -> Item:
        self.minute += 1
        return Item(key, self.random.randint(1, 999) * 100 + 50, day, self.minute)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _inserted(self, batch: list[Item]) -> Iterator[Event]:
        for item in batch:
            row = self.clocks.of_row(item)
            yield Insert(row)
            if self._happens("contradicting", 0.04):
                yield Insert(replace(row, cents=row.cents + 5))

    def _sent(self, batch: list[Item], day: int) -> Iterator[Event]:
        sent: list[Item] = []
        for item in batch:
            sent += self._copies(item)
        self.known += batch
        self.random.shuffle(sent)
        if not sent:
            return
        if not self.is_open and self._happens("transactions", 0.3):
            self.is_open = True
            self.pending = {item.key for item in sent}
            yield Begin(tuple(sent), self.clocks.of_producer())
            if not self._happens("open_at_the_cut", 0.5):
                yield self._end()
        else:
            self.arrived |= {item.key for item in sent}
            yield Send(tuple(sent), self.random.choice(["plain", "idempotent"]), self.clocks.of_producer())

    def _copies(self, item: Item) -> list[Item]:
        """Return the records that come of a ledger row."""
        if self._happens("loss", _SHARE):
            return []
        if self._happens("late_originals" if self.is_repairing else "late", 0.08):
            self.late.append(item)
            return []
        if self._happens("changed", 0.08):
            self.changed.add(item.key)
            return [replace(item, cents=item.cents + 7)]
        return [item] * (2 if self._happens("duplicate", 0.1) else 1)

    def _end(self) -> End:
        self.is_open = False
        is_committed = self.random.random() < 0.6
        self.arrived |= self.pending if is_committed else set()
        return End(is_committed)

    def _load(self, day: int, items: list[Item]) -> Load:
        endings: list[Ending] = ["before_commit", "before_write"]
        ending: Ending = self.random.choice(endings) if self._happens("loader_dies", 0.1) else "committed"
        mishaps = [(item.key, mishap) for item in items if (mishap := self._mishap()) is not None]
        if ending != "committed" and "conflicting" not in self.kinds:
            mishaps = [(key, mishap) for key, mishap in mishaps if mishap != "changed"]
        self.changed |= {key for key, mishap in mishaps if mishap == "changed"}
        return Load(self.clocks.of_store(day), tuple(mishaps), ending)

    def _mishap(self) -> Mishap | None:
        mishaps: tuple[tuple[str, Mishap], ...] = (("loss", "lost"), ("duplicate", "doubled"), ("changed", "changed"))
        for kind, mishap in mishaps:
            if self._happens(kind, 0.05):
                return mishap
        return None

    def _repeats(self, day: int) -> Iterator[Event]:
        old = [item for item in self.known if item.day < day and self._may_repeat(item.key)]
        if old and self._happens("repeated_later", 0.25):
            self.minute += 1
            again = replace(self.random.choice(old), day=day, minute=self.minute)
            yield Send((replace(again, cents=again.cents + 3) if self._happens("conflicting", 0.5) else again,))
        if self._happens("unasked", 0.12):
            yield Send((self._new(f"U{self._next()}", day),))
        if day and self._happens("late_rows", 0.3):
            yield Insert(self._new(f"L{self._next()}", day - 1))

    def _may_repeat(self, key: str) -> bool:
        """Return whether another copy of a key is nothing but a repeat."""
        is_alike = "conflicting" in self.kinds or key not in self.changed
        return is_alike and ("late_originals" in self.kinds or key in self.arrived)

    def _strays(self, day: int) -> Iterator[Event]:
        if self._happens("stray", 0.15):
            yield Stray(self.clocks.of_row(self._new(f"S{self._next()}", day)))
        if self.known and self._happens("erased", 0.2):
            yield Erase(self.random.choice(self.known).key)

    # Its window

    def _window(self, day: int) -> Iterator[Event]:
        for name in STEPS:
            killed_at = self.random.randint(0, 3) if self._happens("killed", 0.05) else None
            yield Step(day, name, killed_at)
            if name == "compensate":
                yield self._load(day + 1, self.random.sample(self.known, min(len(self.known), 3)))
            elif name in ("open", "snapshot", "reconcile", "plan") and self._happens("meanwhile", 0.1):
                yield self._load(day + 1, [])

    def _happens(self, kind: str, probability: float) -> bool:
        """Draw in any case: a kind that is switched off changes little of the rest."""
        chance = probability * (self.trouble if kind in _FAULTS else 1.0)
        return self.random.random() < chance and kind in self.kinds
