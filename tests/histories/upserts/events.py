"""Define what happens in a history of versions: a table of current state, and everybody who writes to it."""

from dataclasses import dataclass, field
from typing import Literal

VersionType = Literal["bigint", "numeric", "timestamptz"]
Mishap = Literal["lost", "changed"]
SecondSource = Literal["topic", "ledger"]
Damage = Literal["value", "amount", "version", "unnumbered"]

UNNUMBERED = -1
"""The number of a version whose record has none."""


@dataclass(frozen=True)
class Version:
    """One version of a key: what the application says of it at a minute of a day. `is_deletion`: a tombstone.
    `is_beside`: it goes into the second source."""

    key: str
    number: int
    cents: int
    region: str
    day: int
    minute: int
    is_deletion: bool = False
    is_beside: bool = False


@dataclass(frozen=True)
class Change:
    """The application writes a version into its ledger, if it has one."""

    version: Version


@dataclass(frozen=True)
class Send:
    """A producer sends versions, new ones or old ones once more."""

    versions: tuple[Version, ...]


@dataclass(frozen=True)
class SendDamaged:
    """A producer sends a version that cannot be read: its whole value, its amount, or its number; or without one."""

    version: Version
    damage: Damage


@dataclass(frozen=True)
class Load:
    """The loader takes what it has not taken yet, on a day. `mishaps`: what it does to the next record of a key."""

    day: int
    mishaps: tuple[tuple[str, Mishap], ...] = ()


@dataclass(frozen=True)
class Rewrite:
    """A loader that was set back writes a row once more, with an amount that is wrong by `cents`."""

    key: str
    day: int
    cents: int


@dataclass(frozen=True)
class Fulfil:
    """Another system moves on what nothing compares, on a day if the time of the store's row moves with it."""

    key: str
    day: int | None


@dataclass(frozen=True)
class Delete:
    """The row of a key goes away."""

    key: str


@dataclass(frozen=True)
class Stray:
    """A row that no record says."""

    version: Version


@dataclass(frozen=True)
class Purge:
    """The ledger forgets what is older than a day."""

    before: int


@dataclass(frozen=True)
class Filter:
    """The file takes one region, or all of them."""

    region: str | None


@dataclass(frozen=True)
class Window:
    """makewhole takes the window of a day all the way."""

    day: int


Event = Change | Send | SendDamaged | Load | Rewrite | Fulfil | Delete | Stray | Purge | Filter | Window


@dataclass(frozen=True, kw_only=True)
class History:
    """A history of versions, and its pipeline. `is_blind`: the loader writes whatever comes last. `second`: a second
    source fills the table, too, and versions are numbered over both. `is_direct`: the ledger feeds the table, with no
    topic between them. `is_in_place`: ledgers that do hold a row for each key, and not for each version."""

    seed: int
    partitions: int
    version_type: VersionType
    has_ledger: bool
    has_version: bool
    is_blind: bool
    is_repairing: bool
    second: SecondSource | None = None
    is_direct: bool = False
    is_in_place: bool = False
    region: str | None = None
    events: tuple[Event, ...] = field(default=())
