"""Keep what a topic and two tables hold, and say what a store should hold for a key.

Written from the words of the documentation, not from the code. The tables are what PostgreSQL says of them, every
column; the log is what producers sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self

from tests.histories.upserts.events import UNNUMBERED, Damage, Version
from tests.histories.watched import TableRow

BESIDE = 10
"""The number that stands for the one partition of the second source."""


@dataclass(frozen=True)
class Record:
    """A record: where it is, and what it says. `damage`: what of it cannot be read. The second source has
    the partition `BESIDE`; the rows of a ledger that feeds the table count as records."""

    partition: int
    offset: int
    version: Version
    damage: Damage | None = None


@dataclass
class Held:
    """Keep what log and tables held at one moment. `region`: the one that the pipeline file takes, None for all.
    `is_direct`: the ledger stands for the log."""

    has_version: bool
    region: str | None
    records: tuple[Record, ...] = ()
    outbox: tuple[TableRow, ...] = ()
    warehouse: tuple[TableRow, ...] = ()
    is_direct: bool = False

    # What there is of a key

    def of_key(self, key: str) -> list[Record]:
        """Return the records of a key, in the order of the log."""
        return [record for record in self.records if record.version.key == key]

    def rows_of(self, key: str) -> list[TableRow]:
        """Return the rows of a key in the store."""
        return [row for row in self.warehouse if row["id"] == key]

    def latest(self, key: str) -> Version | None:
        """Return the latest version of a key: a deletion ends what was before it."""
        latest: Version | None = None
        for record in self.of_key(key):
            version = record.version
            is_first = latest is None or latest.is_deletion or version.is_deletion or not self.has_version
            if record.damage != "value" and (is_first or version.number >= latest.number):  # type: ignore[union-attr]
                latest = version
        return latest

    def is_damaged(self, key: str, *, in_topic: bool = False) -> bool:
        """Whether it cannot be known what the latest version of a key says: its last record in a topic cannot be read,
        or one cannot be placed among the others since its last deletion, of which any is for the store, or `in_topic`,
        where all are."""
        records = self.of_key(key)
        ends = [at for at, record in enumerate(records) if record.version.is_deletion]
        living = records[ends[-1] if ends else 0 :]
        is_any_taken = in_topic or any(
            self.takes(record.version) and not record.version.is_deletion for record in living
        )
        is_unplaced = any(record.damage == "version" for record in living) or _is_unordered(living)
        is_unplaced = is_unplaced and len(living) > 1 and is_any_taken
        last = {record.partition: record.damage for record in living}  # a key has one partition in each topic
        return "value" in last.values() or is_unplaced

    def is_unnumbered(self, key: str) -> bool:
        """Whether the latest version of a key is of a record without a number."""
        latest = self.latest(key)
        return latest is not None and latest.number == UNNUMBERED

    def due(self, key: str) -> Version | None:
        """Return the version that the store should hold for a key, None if it should hold none."""
        latest = self.latest(key)
        return latest if latest and not latest.is_deletion and self.takes(latest) else None

    def takes(self, version: Version) -> bool:
        """Whether a version passes the filter of the file."""
        return self.region in (None, version.region)

    def is_whole(self, key: str) -> bool:
        """Whether the store holds for a key what it should, once."""
        due, rows = self.due(key), self.rows_of(key)
        return (not rows) if due is None else len(rows) == 1 and says(rows[0], due, has_version=self.has_version)

    def until(self, ends: Mapping[int, int]) -> Self:
        """Return the same with the records before these offsets alone."""
        return replace(self, records=tuple(record for record in self.records if record.offset < ends[record.partition]))


def says(row: TableRow, version: Version, *, has_version: bool) -> bool:
    """Whether a row has the value of a version, and its number."""
    is_same = round(float(row["amount"]) * 100) == version.cents
    number = None if version.number == UNNUMBERED else version_of(row.get("version"), version.number)
    return is_same and (not has_version or row["version"] == number)


def _is_unordered(living: Sequence[Record]) -> bool:
    """Whether a record without a number may have come after the first one with the highest."""
    highest = max((record.version.number for record in living if not record.version.is_deletion), default=UNNUMBERED)
    first = next(
        (record for record in living if record.version.number == highest and not record.version.is_deletion), None
    )
    bare = [record for record in living if record.damage == "unnumbered"]
    return (
        first is not None
        and highest != UNNUMBERED
        and any(record.partition != first.partition or record.offset > first.offset for record in bare)
    )


def version_of(like: Any, number: int) -> Any:
    """Return the number of a version as a column holds it that holds `like`."""
    return timestamp(number) if isinstance(like, str) else fraction(number) if isinstance(like, Decimal) else number


def timestamp(number: int) -> str:
    """Return a version that is a time."""
    return f"2024-01-01T00:{number // 60:02}:{number % 60:02}+00:00"


def fraction(number: int) -> float:
    """Return a version that is no whole number."""
    return number + 0.5


@dataclass
class Seen:
    """Hold what was true whenever makewhole looked at one window, and what it said.

    `ranges`: `[lo, hi)` by partition. `moments`: at the snapshot and at the end. `before`, `after`: around the repair.
    `found`: (hop, key) → (verdict, cause). `unnamed`: what changed in anybody's systems, and no plan names.
    """

    day: int
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    moments: list[Held] = field(default_factory=list)
    before: Held | None = None
    after: Held | None = None
    found: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    state: str | None = None
    reason: str | None = None
    unnamed: Sequence[str] = ()

    def has(self, record: Record) -> bool:
        """Whether the window has a record."""
        lo, hi = self.ranges[record.partition]
        return lo <= record.offset < hi

    @property
    def ends(self) -> Mapping[int, int]:
        """Where the window ends in each partition."""
        return {partition: hi for partition, (_, hi) in self.ranges.items()}
