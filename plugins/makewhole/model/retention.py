"""Describe how long what makewhole writes is kept, as a pipeline file says it, and keys that were erased on request."""

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum


class Kept(StrEnum):
    """A kind of what makewhole writes and keeps. `archives`: records as they were in the log. `attempts`: files of
    attempts that died. `findings`: keys and evidence of findings. `effects`: what plans did, with receipts, payloads
    and the rows as they were before. `quarantine`: rows that plans moved aside."""

    ARCHIVES = "archives"
    ATTEMPTS = "attempts"
    FINDINGS = "findings"
    QUARANTINE = "quarantine"
    EFFECTS = "effects"


@dataclass(frozen=True, kw_only=True)
class Keep:
    """How long each kind is kept, from the end of its window, or of its plan; None: for ever."""

    archives: timedelta | None = None
    attempts: timedelta | None = None
    findings: timedelta | None = None
    quarantine: timedelta | None = None
    effects: timedelta | None = None

    def __iter__(self) -> Iterator[tuple[Kept, timedelta]]:
        """Yield the kinds that are not kept for ever, in the order in which they are removed."""
        for item in fields(self):
            kept: timedelta | None = getattr(self, item.name)
            if kept is not None:
                yield Kept(item.name), kept


_BITS_OF_BUCKET = slice(12, 16)  # the end of the upper half
_DIGITS_OF_HASH = 32


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """A key that was erased on request. `key_mac`: the HMAC-SHA256 of its hash with `secret`, in hex; `prefix`: those
    sixteen bits of that hash that say its bucket; `spares`: the points of chains that it is not of. `erased_at` None:
    not all of it is gone yet."""

    id: int
    secret: str = field(repr=False)
    key_mac: str
    prefix: int
    reason: str
    asked_by: str
    asked_at: datetime
    erased_at: datetime | None
    spares: tuple[str, ...] = ()

    def is_of(self, key_hash: str) -> bool:
        """Return whether a key, by its hash (32 hex digits), is the one that was erased."""
        return self.prefix == prefix_of(key_hash) and hmac.compare_digest(self.key_mac, mac_of(self.secret, key_hash))

    def is_of_hop(self, hop: str) -> bool:
        """Return whether a hop, by its name, is of a chain that the key is of."""
        return hop.partition("→")[0] not in self.spares

    @property
    def blind(self) -> str:
        """The text in the place of the key's hash in the journal: of its form, and the hash of no key."""
        return self.key_mac[:_DIGITS_OF_HASH]

    @property
    def sentence(self) -> str:
        """Describe when it was erased, and by which request."""
        return f"erased on request at {self.asked_at:%Y-%m-%d %H:%M UTC} (erasure {self.id})"


def prefix_of(key_hash: str) -> int:
    """Return the sixteen bits of a key's hash (32 hex digits) that say its bucket, of any number of buckets."""
    return int(key_hash[_BITS_OF_BUCKET], 16)


def mac_of(secret: str, key_hash: str) -> str:
    """Return the HMAC-SHA256 of a key's hash with a secret (hex), in hex."""
    return hmac.new(bytes.fromhex(secret), key_hash.encode(), "sha256").hexdigest()


def erased_among(erasures: Iterable[Erasure], key_hashes: Iterable[str]) -> dict[str, str]:
    """Return those of some keys, by their hashes, that were erased on request, each with the sentence that says so."""
    by_prefix: dict[int, list[Erasure]] = {}
    sentences = {}
    blind = set[str]()
    for erasure in erasures:
        by_prefix.setdefault(erasure.prefix, []).append(erasure)
        blind.add(erasure.blind)
    for key in key_hashes if by_prefix else ():
        if key in blind:
            sentences[key] = "erased on request"
        for candidate in by_prefix.get(prefix_of(key), ()):
            if candidate.is_of(key):
                sentences[key] = candidate.sentence
    return sentences
