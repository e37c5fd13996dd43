"""Define what happens in a history of one pipeline, whatever its records and its store are made of."""

from dataclasses import dataclass, field
from typing import Literal

Mishap = Literal["lost", "doubled", "changed"]
Mishaps = tuple[tuple[int, Mishap], ...]
"""What happens to the events of a number."""
Ending = Literal["plain", "idempotent", "committed", "aborted", "open"]
"""How a batch is written: without or with a producer's identity, or in a transaction that ends so, or not yet."""
KeyKind = Literal["id", "position", "sequence"]


@dataclass(frozen=True, repr=False)
class Item:
    """A business event: its number names it; `version` 0 is what it was first, each other one has one value changed."""

    number: int
    day: int
    version: int = 0

    def __repr__(self) -> str:
        changes = f", changed {self.version} times" if self.version else ""
        return f"O{self.number} of day {self.day}{changes}"

    def changed(self) -> "Item":
        """Return it with another value in one column."""
        return Item(self.number, self.day, self.version + 1)


@dataclass(frozen=True)
class Insert:
    """The application writes rows into its ledger."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Send:
    """A producer of its own session sends records of a day."""

    items: tuple[Item, ...]
    day: int
    ending: Ending = "plain"


@dataclass(frozen=True)
class End:
    """The transaction that a producer left open is committed, or aborted."""

    is_committed: bool


@dataclass(frozen=True)
class Load:
    """The loader takes what is committed from where it stands into the store.

    `ending`: of a store that is a topic, how its batch ends. `gid`: the rows stay in a transaction that is prepared
    under this name. `files`: a dataset gets the rows in so many files.
    """

    mishaps: Mishaps = ()
    ending: Ending = "plain"
    gid: str | None = None
    files: int = 1


@dataclass(frozen=True)
class Stray:
    """A person writes into the store what no record says."""

    item: Item


@dataclass(frozen=True)
class Doubt:
    """A transaction changes the rows of a number, or deletes them, and stays prepared."""

    gid: str
    number: int
    how: Literal["changed", "deleted"]


@dataclass(frozen=True)
class Settle:
    """A transaction that is prepared is committed, or rolled back."""

    gid: str
    is_committed: bool


@dataclass(frozen=True)
class Pass:
    """Two days pass, as far as makewhole remembers: longer than a key may stay pending."""


@dataclass(frozen=True)
class Compact:
    """A dataset is written again in one file, without the rows of some numbers."""

    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class ListAgain:
    """The newest file of a dataset is there once more."""


@dataclass(frozen=True)
class RollBack:
    """An Iceberg table goes back to what it was before its newest snapshot."""


@dataclass(frozen=True)
class Window:
    """makewhole takes the window of a day all the way."""

    day: int


Event = Insert | Send | End | Load | Stray | Doubt | Settle | Pass | Compact | ListAgain | RollBack | Window


@dataclass(frozen=True, kw_only=True)
class History:
    """A history, and the pipeline that it happens to.

    `record_format`, `store`: names of `formats.FORMATS` and of `stores.STORES`, `iceberg`, `files`, or `topic`. `key`:
    what of a record is its key; without `id` there is no ledger. `compared`: the columns that the file compares;
    `of_store_hop`: those of the store's hop, if it has a line of its own. `where`: the filter of that hop. `produces`:
    what the topic lacks of the ledger is sent.
    """

    seed: int
    record_format: str
    key: KeyKind
    store: str
    partitions: int
    is_repairing: bool
    compared: tuple[str, ...]
    of_store_hop: tuple[str, ...] | None
    where: str | None
    produces: bool = False
    events: tuple[Event, ...] = field(default=())

    @property
    def sends_again(self) -> bool:
        """Whether a repair may write into the topic. Behind an open transaction no consumer could read that."""
        return self.is_repairing and self.store == "topic"

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger: its rows have no coordinates of records."""
        return self.key == "id"

    @property
    def store_columns(self) -> tuple[str, ...]:
        """The columns that the store's hop compares."""
        return self.compared if self.of_store_hop is None else self.of_store_hop

    @property
    def is_dataset(self) -> bool:
        """Whether the store is a dataset."""
        return self.store in ("iceberg", "files")

    @property
    def is_table(self) -> bool:
        """Whether the store is a table of PostgreSQL."""
        return not self.is_dataset and self.store != "topic"
