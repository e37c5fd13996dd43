"""Define what happens in a history: events of people's systems, and the steps that makewhole takes in between."""

from dataclasses import dataclass, field
from typing import Literal

Producer = Literal["plain", "idempotent"]
Mishap = Literal["lost", "doubled", "changed", "let_in"]
Ending = Literal["committed", "before_commit", "before_write"]
StepName = Literal["open", "snapshot", "reconcile", "validate", "plan", "answer", "compensate", "verify", "certify"]

STEPS: tuple[StepName, ...] = (
    "open",
    "snapshot",
    "reconcile",
    "validate",
    "plan",
    "answer",
    "compensate",
    "verify",
    "certify",
)


@dataclass(frozen=True)
class Item:
    """A business event: its key, its amount in cents, the day and minute that it says it is of, and its region."""

    key: str
    cents: int
    day: int
    minute: int
    region: str = "EU"


@dataclass(frozen=True)
class Insert:
    """The application writes a row into its ledger."""

    item: Item


@dataclass(frozen=True)
class Send:
    """A producer of its own session sends records, and they are acknowledged. Its clock is `minutes` ahead."""

    items: tuple[Item, ...]
    producer: Producer = "plain"
    minutes: int = 0


@dataclass(frozen=True)
class Begin:
    """A transaction begins with these records, and stays open. Its producer's clock is `minutes` ahead."""

    items: tuple[Item, ...]
    minutes: int = 0


@dataclass(frozen=True)
class End:
    """The open transaction, if there is one, ends."""

    is_committed: bool


@dataclass(frozen=True)
class Load:
    """The loader reads what is committed from where its group stands and inserts it; `ending` says where it dies.

    `mishaps`: what it does to the records of a key. Rows are written with `day` as their time.
    """

    day: int
    mishaps: tuple[tuple[str, Mishap], ...] = ()
    ending: Ending = "committed"


@dataclass(frozen=True)
class Stray:
    """A person writes a row into the store that no record says."""

    item: Item


@dataclass(frozen=True)
class Erase:
    """A person deletes all rows of a key from the store. `is_named`: and writes into the table of erasures that it was
    intended."""

    key: str
    is_named: bool = False


@dataclass(frozen=True)
class Fulfil:
    """Another system writes into the column that nothing compares, in all rows of a key in a table."""

    table: Literal["outbox", "warehouse"]
    key: str
    status: str


@dataclass(frozen=True)
class Pass:
    """Two days pass, as far as makewhole remembers: longer than a key may stay pending."""


@dataclass(frozen=True)
class Retain:
    """Kafka deletes the beginning of every partition: what the window before has read, and so many offsets more."""

    beyond: int = 0


@dataclass(frozen=True)
class Step:
    """makewhole takes a step of a window. `killed_at`: its first try dies at this commit of the journal (from 0)."""

    window: int
    name: StepName
    killed_at: int | None = None


Event = Insert | Send | Begin | End | Load | Stray | Erase | Fulfil | Pass | Retain | Step


@dataclass(frozen=True, kw_only=True)
class History:
    """A history, and the pipeline that it happens to. `store_missing`, `store_mismatched`: remedies of the store's hop.

    `has_group`: the pipeline file names the loader's group. `asks`: every plan waits for a person, who says `answer`.
    `has_filter`: the store takes the region EU alone. `names_erased`: a table names keys that were erased on purpose.
    """

    seed: int
    partitions: int
    has_group: bool
    is_repairing: bool
    store_missing: str
    store_mismatched: str
    asks: bool
    answer: Literal["approved", "rejected", "none"]
    has_filter: bool = False
    names_erased: bool = False
    events: tuple[Event, ...] = field(default=())
