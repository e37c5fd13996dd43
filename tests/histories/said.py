"""Keep what makewhole has said and done about one window, beside what was true meanwhile."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from makewhole.model.plan import Plan
from makewhole.model.window import Window
from tests.histories.events import History
from tests.histories.right import LEDGER, PENDING, STORE, HopName, Scope
from tests.histories.truth import Row, Truth


@dataclass(frozen=True)
class Repair:
    """The contents of the systems before and after compensation."""

    before: Truth
    after: Truth

    def restored(self) -> set[str]:
        """Return the keys that have a row in the store after which they had not before."""
        before = {(row.key, row.cents) for row in self.before.store}
        return {row.key for row in self.after.store if (row.key, row.cents) not in before}


@dataclass
class Said:
    """The answers for one window. `moments`: what the systems held whenever makewhole looked. `read`: the rows of the
    store that this window and those before it have read. `unnamed`: what changed in people's systems, and no plan names
    it."""

    scope: Scope
    before: Self | None
    opened: Truth
    moments: list[Truth] = field(default_factory=list)
    found: Mapping[tuple[HopName, str], tuple[str, str]] = field(default_factory=dict)
    repairs: list[Repair] = field(default_factory=list)
    gate: str | None = None
    plan: Plan | None = None
    state: str | None = None
    reason: str | None = None
    incidents: tuple[str, ...] = ()
    unnamed: Sequence[str] = ()
    read: Counter[Row] = field(default_factory=Counter)

    @classmethod
    def of(cls, history: History, earlier: Sequence[Self], window: Window, truth: Truth) -> Self:
        """Begin with the ranges that a window was opened with."""
        last = earlier[-1] if earlier else None
        certified = [before for before in earlier if before.state == "certified"]
        ranges = {part.partition: (part.lo, part.hi) for part in window.ranges["orders"]}
        scope = Scope(
            number=window.number - 1,
            ranges=ranges,
            rows=frozenset(),
            handed={hop: last.handed_over(hop) if last else frozenset() for hop in (LEDGER, STORE)},
            has_group=history.has_group,
            seen=frozenset(key for before in certified for key in before.seen()),
            restored=frozenset(key for before in earlier for repair in before.repairs for key in repair.restored()),
            overdue={hop: last.overdue(hop, truth.passed) if last else frozenset() for hop in (LEDGER, STORE)},
            reported=frozenset(
                key for before in earlier if before.state != "certified" for key in before.wrong_in_store()
            ),
            perhaps_seen=frozenset(row.key for before in certified for truth in before.moments for row in truth.store),
        )
        return cls(scope=scope, before=last, opened=truth.copy())

    def handed_over(self, hop: HopName) -> frozenset[str]:
        """Return the keys that this window leaves to the next."""
        return frozenset(key for (at, key), (verdict, _) in self.found.items() if at == hop and verdict == PENDING)

    def waiting_since(self, hop: HopName, key: str) -> int:
        """Return how often two days had passed when the window was opened that first said a key is pending."""
        if self.before is not None and key in self.before.handed_over(hop):
            return self.before.waiting_since(hop, key)
        return self.opened.passed

    def overdue(self, hop: HopName, passed: int) -> frozenset[str]:
        """Return the keys that this window leaves to the next, and that have waited for longer than any key may."""
        return frozenset(key for key in self.handed_over(hop) if self.waiting_since(hop, key) < passed)

    def wrong_in_store(self) -> frozenset[str]:
        """Return the keys that it found something wrong with in the store."""
        return frozenset(key for (hop, key), (verdict, _) in self.found.items() if hop == STORE and verdict != PENDING)

    def seen(self) -> frozenset[str]:
        """Return the keys that this window has seen in the store: when it read their rows, or looked for them as it has
        their records; and what it repaired. Rows that a window before has read it does not read again."""
        gaps = {key for (hop, key), (verdict, _) in self.found.items() if hop == STORE and verdict != PENDING}
        repaired = gaps if self.repairs else set()
        then, now = self.moments[0], self.moments[-1]
        read = {row.key for row in then.store if row.key in self.scope.fresh or self._has_record(then, row.key)}
        return frozenset(read | {row.key for row in now.store if row.key in repaired})

    def _has_record(self, truth: Truth, key: str) -> bool:
        if key in self.scope.handed[STORE]:
            return True
        return any(self.scope.side(copy) == 0 for copy in truth.committed_copies(key))

    def still_there(self) -> Counter[Row]:
        """Return the rows that this window or one before has read, but for those that are gone since: where one of them
        comes again, it is another row."""
        return self.read & Counter(self.moments[-1].store) if self.moments else self.read

    def take_rows(self, truth: Truth) -> None:
        """Note what is read now: the rows that are old enough and that no window has read, and what is gone."""
        taken: set[str] = set()
        window = self.before
        while window is not None:
            taken |= window.scope.rows
            window = window.before
        rows = {item.key for item in truth.ledger if item.day <= self.scope.number} - taken
        self.scope.rows = frozenset(rows)
        self.scope.late = frozenset(rows - {item.key for item in self.opened.ledger})
        before = self.before.still_there() if self.before is not None else Counter()
        fresh = Counter(row for row in truth.store if row.day is not None and row.day <= self.scope.number) - before
        self.scope.fresh = frozenset(row.key for row in fresh)
        self.read = before + fresh
        gone = any(truth.starts[partition] > lo and hi > lo for partition, (lo, hi) in self.scope.ranges.items())
        self.scope.has_gone = gone or (self.before is not None and self.before.scope.has_gone)
