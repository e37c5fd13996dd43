"""Derive what is right of a key from what the places of one pipeline hold.

Written from the words of the documentation, not from the code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.histories.pipelines.events import History
from tests.histories.pipelines.orders import Values, in_columns

Answer = str | None
"""A verdict; None: nothing is wrong."""
Point = tuple[int, int]
"""The partition and the offset of a record."""


@dataclass(frozen=True)
class Copy:
    """A row or a record. `day`: that of its time. `at`: where a record lies. `is_taken`: whether the store's filter
    takes it. `is_replay`: makewhole sent it."""

    key: str
    values: Values
    day: int
    at: Point | None = None
    is_taken: bool = True
    is_replay: bool = False


@dataclass(frozen=True)
class Held:
    """Hold what each place held at one moment. `doubts`: the prepared transactions; `marked`: the keys of the rows that
    they changed or deleted. `overdue`: the keys that have been pending for longer than any may. `open`: the keys of
    records in a transaction that is open in the log."""

    history: History
    ledger: Sequence[Copy]
    records: Sequence[Copy]
    rows: Sequence[Copy]
    doubts: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    overdue: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()

    def all_keys(self) -> list[str]:
        """Return every key that is anywhere."""
        return sorted({copy.key for copies in (self.ledger, self.records, self.rows) for copy in copies})

    def sent(self, key: str) -> list[Copy]:
        """Return the records of a key. One that makewhole sent counts where there is no other."""
        copies = [copy for copy in self.records if copy.key == key]
        return [copy for copy in copies if not copy.is_replay] or copies[:1]

    def rows_of(self, key: str) -> list[Copy]:
        """Return the rows of a key."""
        return [copy for copy in self.rows if copy.key == key]

    def of_ledger_hop(self, key: str) -> Answer:
        """Return what is right on the hop from the ledger to the topic."""
        if not self.history.has_ledger:
            return None
        columns = self.history.compared
        here = {in_columns(copy.values, columns) for copy in self.ledger if copy.key == key}
        there = [in_columns(copy.values, columns) for copy in self.sent(key)]
        if not here:
            return "unexpected" if there else None
        if len(there) != 1:
            return "duplicate" if there else "pending" if key in self.open else "missing"
        return None if there[0] in here else "mismatched"

    def really(self, key: str) -> Answer:
        """Return what is wrong on the hop from the topic to the store, whatever transactions may hold."""
        columns = self.history.store_columns
        here = {in_columns(copy.values, columns) for copy in self.sent(key) if copy.is_taken}
        there = [in_columns(copy.values, columns) for copy in self.rows_of(key)]
        if not here:
            return "unexpected" if there else None
        if len(there) != 1:
            return "duplicate" if there else "missing"
        return None if there[0] in here else "mismatched"

    def has_no_survivor(self, key: str) -> bool:
        """Whether a key has several rows of which none is as its record says: which of them stays is for a person."""
        columns = self.history.store_columns
        here = {in_columns(copy.values, columns) for copy in self.sent(key) if copy.is_taken}
        there = {in_columns(copy.values, columns) for copy in self.rows_of(key)}
        return self.really(key) == "duplicate" and not here & there

    def is_in_doubt(self, key: str) -> bool:
        """Whether a prepared transaction may hold a key that is wrong, as far as can be seen."""
        return key in self.marked if self.rows_of(key) else bool(self.doubts)

    def of_store_hop(self, key: str) -> Answer:
        """Return what is right on the hop from the topic to the store."""
        truth = self.really(key)
        if truth is None or not self.is_in_doubt(key):
            return truth
        if truth == "unexpected":
            return "undecidable"
        return truth if key in self.overdue else "pending"

    def is_perhaps_unsettled(self, hop: str, key: str) -> bool:
        """Whether a key that the topic lacks may be said to be under way: beside a transaction that is open in the
        ledger's database no younger row is certainly settled, and its tables are in the store's."""
        return hop == "ledger" and bool(self.doubts) and self.of_ledger_hop(key) == "missing"

    def is_disputed(self, key: str) -> bool:
        """Whether the hop into the topic says that its record is not what it should be."""
        return self.of_ledger_hop(key) in ("mismatched", "unexpected")

    def is_harmless(self, key: str) -> bool:
        """Whether a key that the topic has twice came into the store once and rightly: more cannot be mended."""
        return self.of_ledger_hop(key) == "duplicate" and self.really(key) is None


@dataclass
class Seen:
    """Hold what was true whenever makewhole looked at one window, and what it said: hop → key → (verdict, cause).

    `ranges`: `[lo, hi)` by partition. `handed`: the keys that the window before has left to it, by hop.
    """

    day: int
    handed: Mapping[str, frozenset[str]]
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    moments: list[Held] = field(default_factory=list)
    found: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    before: Held | None = None
    after: Held | None = None
    state: str | None = None
    reason: str | None = None

    def is_of_records(self, hop: str, key: str) -> bool:
        """Whether the window has a record of a key; what makewhole sent again says nothing new of the ledger's."""
        records = [copy for copy in self.moments[0].records if copy.key == key]
        places = [copy.at for copy in records if copy.at is not None and not (hop == "ledger" and copy.is_replay)]
        return any(lo <= at < hi for partition, at in places for lo, hi in [self.ranges.get(partition, (0, 0))])

    def is_about(self, hop: str, key: str) -> bool:
        """Whether the window has to judge a key on a hop."""
        held = self.moments[0]
        own: Sequence[Copy] = held.ledger if hop == "ledger" else [] if held.sent(key) else held.rows
        is_of_day = any(copy.key == key and copy.day == self.day for copy in own)
        return is_of_day or self.is_of_records(hop, key) or key in self.handed.get(hop, frozenset())

    def pending(self, hop: str) -> frozenset[str]:
        """Return the keys that this window leaves to the next."""
        return frozenset(key for key, (verdict, _) in self.found.get(hop, {}).items() if verdict == "pending")


HOPS: Mapping[str, Callable[[Held, str], Answer]] = {"ledger": Held.of_ledger_hop, "store": Held.of_store_hop}
"""What is right, by hop."""
