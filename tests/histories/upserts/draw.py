"""Draw a history of versions from a seed: days of changes, what goes wrong with them, and the window of each day."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.upserts.events import (
    Change,
    Damage,
    Delete,
    Event,
    Filter,
    Fulfil,
    History,
    Load,
    Mishap,
    Purge,
    Rewrite,
    SecondSource,
    Send,
    SendDamaged,
    Stray,
    Version,
    VersionType,
    Window,
)

KINDS = {
    "loss": True,  # a version is never sent, a loader leaves one out
    "changed": True,  # a loader writes another amount
    "sent_again": True,  # an old version is sent again, and a blind loader writes it over the newer one
    "deletions": True,  # tombstones, and loaders that miss them
    "rewritten": True,  # a loader that was set back writes older rows wrongly
    "fulfilled": True,  # another system changes a column that nothing compares
    "gone": True,  # rows are deleted
    "stray": True,  # rows that no record says
    "unreadable": True,  # records of which the value or the amount cannot be read
    "unreadable_version": True,  # or the version
    "unnumbered": True,  # or that have none
    "purged": True,  # the ledger forgets what is older
    "filter": True,  # the store takes one region alone
    "filter_changes": True,  # and another one from some day on
    "version_types": True,  # a version may be a number with a fraction, or a time
    "two_sources": True,  # two topics fill the table, or a topic and a ledger: their versions are numbered together
    "direct": True,  # the ledger feeds the table, with no topic between them, and so does a second one
    "in_place": True,  # ledgers that feed the table write over the row of a key
    "unversioned": True,  # or there is none, and the last position counts
}
"""The kinds of events, and whether they are drawn when nothing names any."""

_WINDOWS = 4
_TROUBLES = (0.0, 0.3, 1.0)


def draw(seed: int, kinds: frozenset[str]) -> History:
    """Draw the history of a seed, of these kinds."""
    return _Draw(Random(f"versions {seed}"), kinds).history(seed)


@dataclass
class _Draw:
    """The state of a drawing: what has been made so far."""

    random: Random
    kinds: frozenset[str]
    minute: int = 0
    number: int = 0
    region: str | None = None
    has_ledger: bool = True
    has_version: bool = True
    second: SecondSource | None = None
    is_direct: bool = False
    has_filter: bool = True
    current: dict[str, Version] = field(default_factory=dict)
    topics: dict[str, set[bool]] = field(default_factory=dict)
    older: list[Version] = field(default_factory=list)
    trouble: float = 1.0

    def history(self, seed: int) -> History:
        choice = self.random.choice
        types: list[VersionType] = ["bigint", "numeric", "timestamptz"]
        version_type = choice(types)
        self.has_version = not self._happens("unversioned", 0.2)
        self.has_ledger = choice([True, False])
        # What leaves one of two topics by its filter is left to the other: that is held to the model of the routes.
        is_filtered = self._happens("filter", 0.4)
        self.is_direct = self._happens("direct", 0.3) and self.has_ledger
        self.second = self._second()
        self.has_filter = self.second is None
        self.region = choice(["EU", "US"]) if is_filtered and self.has_filter else None
        return History(
            seed=seed,
            partitions=choice([1, 2]),
            version_type=version_type if "version_types" in self.kinds else "bigint",
            has_ledger=self.has_ledger,
            has_version=self.has_version,
            is_blind=not self.has_version or choice([True, False]),
            is_repairing=self.random.random() < 0.8,
            second=self.second,
            is_direct=self.is_direct,
            is_in_place=self._happens("in_place", 0.5),
            region=self.region,
            events=tuple(event for day in range(_WINDOWS) for event in self._day(day)),
        )

    def _second(self) -> SecondSource | None:
        """Choose the second source of the table: behind a ledger of its own a topic has none."""
        has_one = self._happens("two_sources", 0.3) and self.has_version and (self.is_direct or not self.has_ledger)
        return ("ledger" if self.is_direct else self.random.choice(["topic", "ledger"])) if has_one else None

    def _day(self, day: int) -> Iterator[Event]:
        self.trouble = self.random.choice(_TROUBLES)
        yield from self._morning(day)
        for _ in range(self.random.randint(1, 3)):
            yield from self._sent(self._versions(day), day)
            if self.random.random() < 0.5:
                yield self._load(day)
        yield self._load(day)
        yield from self._others(day)
        yield Window(day)

    def _morning(self, day: int) -> Iterator[Event]:
        if day and self.has_ledger and self._happens("purged", 0.3) and not self.is_direct:  # it would delete keys
            yield Purge(day)
        if day and self._happens("filter_changes", 0.2) and self.has_filter:
            self.region = self.random.choice([region for region in (None, "EU", "US") if region != self.region])
            yield Filter(self.region)

    def _versions(self, day: int) -> list[Version]:
        """New keys and new versions of old ones, each of a key once."""
        old = self.random.sample(sorted(self.current), min(len(self.current), self.random.randint(0, 3)))
        fresh = [self._next_key() for _ in range(self.random.randint(0 if old else 1, 3))]
        return [self._version(key, day) for key in [*old, *fresh]]

    def _next_key(self) -> str:
        self.number += 1
        return f"K{self.number}"

    def _version(self, key: str, day: int) -> Version:
        self.minute += 1
        before = self.current.get(key)
        is_beside = self._is_beside(before)
        topics = self.topics.setdefault(key, set())
        topics.add(is_beside)
        is_of_topic = not self.has_ledger and (self.second != "ledger" or not is_beside)
        can_go = before and not before.is_deletion and is_of_topic and len(topics) == 1
        version = Version(
            key=key,
            number=before.number + 1 if before else 1,
            cents=self.random.randint(1, 999) * 100 + 50,
            region=before.region if before and self.random.random() < 0.7 else self.random.choice(["EU", "US"]),
            day=day,
            minute=self.minute,
            is_deletion=bool(can_go and self._happens("deletions", 0.3)),
            is_beside=is_beside,
        )
        self.older += [before] if before else []
        self.current[key] = version
        return version

    def _is_beside(self, before: Version | None) -> bool:
        """Choose the source of a version: of a new key either, of others now and then the other one; but a deletion
        ends the versions of its own topic alone, and the key stays there."""
        moves = self.random.random() < (0.5 if before is None else 0.3) and self.second is not None
        if before is None:
            return moves
        return before.is_beside != (moves and not before.is_deletion)

    def _sent(self, versions: list[Version], day: int) -> Iterator[Event]:
        for version in versions:
            yield Change(version)
            if self._goes_wrong("loss", 0.15):
                continue
            if self._goes_wrong("unreadable", 0.08) and not version.is_deletion:
                damages: list[Damage] = ["value", "amount"]
                damages += ["version"] if self.has_version and "unreadable_version" in self.kinds else []
                damages += ["unnumbered"] if self.has_version and "unnumbered" in self.kinds else []
                yield SendDamaged(version, self.random.choice(damages))
            else:
                yield Send((version,))
        if self.older and self._goes_wrong("sent_again", 0.3):
            again = [older for older in self.older if not older.is_deletion]
            yield Send((replace(self.random.choice(again), day=day, minute=self.minute),)) if again else Send(())

    def _load(self, day: int) -> Load:
        drawn = ((key, self._mishap()) for key in sorted(self.current))
        return Load(day, tuple((key, mishap) for key, mishap in drawn if mishap is not None))

    def _mishap(self) -> Mishap | None:
        if self._goes_wrong("loss", 0.07):
            return "lost"
        return "changed" if self._goes_wrong("changed", 0.07) else None

    def _others(self, day: int) -> Iterator[Event]:
        """Yield what other people's systems do to rows."""
        keys = sorted(self.current)
        for key in self.random.sample(keys, min(len(keys), 3)):
            if self._happens("fulfilled", 0.5):
                yield Fulfil(key, day if self.random.random() < 0.3 else None)
        if self._goes_wrong("rewritten", 0.4):
            yield Rewrite(self.random.choice(keys), day, self.random.choice([0, 7]))
        if self._goes_wrong("gone", 0.2):
            yield Delete(self.random.choice(keys))
        if self._goes_wrong("stray", 0.2):
            yield Stray(Version(f"S{self.number}{day}", 1, 150, self.region or "EU", day, self.minute))

    def _goes_wrong(self, kind: str, probability: float) -> bool:
        return self._happens(kind, probability * self.trouble)

    def _happens(self, kind: str, probability: float) -> bool:
        """Draw in any case: a kind that is switched off changes little of the rest."""
        return self.random.random() < probability and kind in self.kinds
