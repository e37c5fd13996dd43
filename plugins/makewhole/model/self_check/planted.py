"""Draw the faults that a self-check plants, and say which are found."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from makewhole.model.self_check.settings import STORE_HOP, TOPIC_HOP
from makewhole.model.verdict import Verdict

_ON_KEYS = (
    (TOPIC_HOP, Verdict.MISSING),
    (STORE_HOP, Verdict.MISSING),
    (STORE_HOP, Verdict.DUPLICATE),
    (STORE_HOP, Verdict.MISMATCHED),
)
_CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True, order=True)
class Discrepancy:
    """One key that is wrong on one hop."""

    hop: str
    verdict: str
    key: str


@dataclass(frozen=True, kw_only=True)
class SentRow:
    """A row of a self-check's ledger: its key, and the value that every point has to have."""

    key: str
    amount: Decimal


def rows_of(name: str, records: int) -> list[SentRow]:
    """Return the rows of a round, which is named by `name`: the same ones whenever they are asked for."""
    return [SentRow(key=f"{name}-{number:06d}", amount=number * 37 % 100_000 * _CENT) for number in range(records)]


def draw(name: str, seed: str, records: int, most: int) -> tuple[Discrepancy, ...]:
    """Draw the faults of a round: of each kind one at least and `most` at most, none on the same key, in order."""
    chance = random.Random(seed)
    keys = iter(chance.sample([row.key for row in rows_of(name, records)], len(_ON_KEYS) * most))
    return tuple(sorted([*_on_keys(keys, chance, most), *_unexpected(name, chance, most)]))


def _on_keys(keys: Iterator[str], chance: random.Random, most: int) -> Iterator[Discrepancy]:
    for hop, verdict in _ON_KEYS:
        for _ in range(chance.randint(1, most)):
            yield Discrepancy(hop=hop, verdict=verdict.value, key=next(keys))


def _unexpected(name: str, chance: random.Random, most: int) -> Iterator[Discrepancy]:
    for number in range(chance.randint(1, most)):
        yield Discrepancy(hop=STORE_HOP, verdict=Verdict.UNEXPECTED.value, key=f"{name}-x{number:05d}")


def keys_of(planted: Sequence[Discrepancy], hop: str, verdict: Verdict) -> list[str]:
    """Return the keys on which faults of a kind are planted."""
    return [fault.key for fault in planted if (fault.hop, fault.verdict) == (hop, verdict.value)]
