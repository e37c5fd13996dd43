"""Keep what ledger, log and store hold, as anybody would who saw it happen; nothing here knows the product.

Offsets are counted as Kafka counts them: a record takes one, and so does the marker that ends a transaction.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from tests.histories.events import Item, Load

Status = Literal["committed", "open", "aborted"]


@dataclass(frozen=True)
class Copy:
    """A record in the log. `is_replay`: makewhole wrote it."""

    partition: int
    offset: int
    item: Item
    status: Status = "committed"
    is_replay: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the store; `day` is the one of its time column, None where it has no time that a window is of."""

    key: str
    cents: int
    day: int | None


@dataclass(frozen=True)
class Position:
    """Where the loader has come to in a partition."""

    partition: int
    offset: int


@dataclass
class Truth:
    """Hold what the systems have now. By partition: `ends` and `starts` of the log, the loader's `committed` offsets.

    `named`: the keys that the table of erasures has. `passed`: how often two days have passed.
    """

    partitions: int
    has_filter: bool = False
    ledger: list[Item] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    store: list[Row] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    passed: int = 0

    def __post_init__(self) -> None:
        for partition in range(self.partitions):
            self.ends.setdefault(partition, 0)
            self.starts.setdefault(partition, 0)

    def copy(self) -> Self:
        """Return what the systems hold at this moment, for later."""
        return deepcopy(self)

    def partition_of(self, item: Item) -> int:
        """Return the partition that producers send a key to."""
        return int(item.key[1:]) % self.partitions

    # The log

    def append(self, items: Iterable[Item], status: Status = "committed") -> list[Copy]:
        """Append records in their order."""
        added = []
        for item in items:
            partition = self.partition_of(item)
            added.append(Copy(partition, self.ends[partition], item, status))
            self.ends[partition] += 1
        self.copies += added
        return added

    def end_transaction(self, *, is_committed: bool) -> None:
        """Give the open records their status, and each of their partitions a marker."""
        status: Status = "committed" if is_committed else "aborted"
        touched = {copy.partition for copy in self.copies if copy.status == "open"}
        self.copies = [replace(copy, status=status) if copy.status == "open" else copy for copy in self.copies]
        for partition in touched:
            self.ends[partition] += 1

    @property
    def is_transaction_open(self) -> bool:
        """Whether there are open records."""
        return any(copy.status == "open" for copy in self.copies)

    def stable(self, partition: int) -> int:
        """Return the offset of the first open record, or the end."""
        still_open = [copy.offset for copy in self.copies if copy.status == "open" and copy.partition == partition]
        return min([self.ends[partition], *still_open])

    def is_stable(self, copy: Copy) -> bool:
        """Return whether a consumer that reads what is committed is given what lies here."""
        return copy.offset < self.stable(copy.partition)

    def copies_of(self, key: str) -> list[Copy]:
        """Return the records of a key, in the order of the log."""
        return [copy for copy in self.copies if copy.item.key == key]

    def committed_copies(self, key: str) -> list[Copy]:
        """Return the committed ones."""
        return [copy for copy in self.copies_of(key) if copy.status == "committed"]

    # The store

    def takes(self, item: Item) -> bool:
        """Return whether the store is to have an item."""
        return not self.has_filter or item.region == "EU"

    def taken_copies(self, key: str) -> list[Copy]:
        """Return the committed records of a key that the store is to have."""
        return [copy for copy in self.committed_copies(key) if self.takes(copy.item)]

    def rows_of(self, key: str) -> list[Row]:
        """Return the rows of a key."""
        return [row for row in self.store if row.key == key]

    def load(self, event: Load) -> tuple[list[Row], dict[int, int]]:
        """Return the rows that the loader writes and the offsets that it commits, and remember both."""
        fresh, reached = [], dict(self.committed)
        for copy in sorted(self.copies, key=lambda copy: (copy.partition, copy.offset)):
            start = max(self.committed.get(copy.partition, 0), self.starts[copy.partition])
            if copy.status == "committed" and start <= copy.offset and self.is_stable(copy):
                fresh.append(copy)
                reached[copy.partition] = copy.offset + 1
        rows = [row for copy in fresh for row in self._loaded(copy.item, event)]
        rows = [] if event.ending == "before_write" else rows
        reached = dict(self.committed) if event.ending == "before_commit" else reached
        self.store += rows
        self.committed = reached
        return rows, reached

    def _loaded(self, item: Item, event: Load) -> list[Row]:
        """Return the rows that the loader makes of one record."""
        row, mishap = Row(item.key, item.cents, event.day), dict(event.mishaps).get(item.key)
        if not self.takes(item):
            return [row] if mishap == "let_in" else []
        match mishap:
            case "lost":
                return []
            case "doubled":
                return [row, row]
            case "changed":
                return [replace(row, cents=row.cents + 11)]
            case _:
                return [row]
