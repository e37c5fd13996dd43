"""Put what a plan did to keys beside what was found of them: both are read in the order of the key hashes."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Protocol, TypeVar

from makewhole.journal.findings.window_findings import JudgedFinding


class OfKey(Protocol):
    """Something that was done to a key."""

    @property
    def key_hash(self) -> str: ...


Done = TypeVar("Done", bound=OfKey)


def with_findings(
    done: Iterable[Done], findings: Iterable[JudgedFinding]
) -> Iterator[tuple[list[Done], list[JudgedFinding]]]:
    """Yield what was done to each key, with the findings of this key; of other keys nothing."""
    by_key = ((key_hash, list(of_key)) for key_hash, of_key in groupby(findings, lambda item: item.finding.key_hash))
    last: tuple[str, list[JudgedFinding]] | None = ("", [])
    for key_hash, of_key in groupby(done, lambda key: key.key_hash):
        while last is not None and last[0] < key_hash:
            last = next(by_key, None)
        yield list(of_key), last[1] if last is not None and last[0] == key_hash else []
