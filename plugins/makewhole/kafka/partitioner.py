"""Find the partition into which producers put a key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from aiokafka.partitioner import murmur2

from makewhole.model.points import Partitioner

_LIBRDKAFKA = {
    Partitioner.MURMUR2: "murmur2_random",
    Partitioner.CRC32: "consistent_random",
    Partitioner.RANDOM: "random",
}
_POSITIVE = 0x7FFFFFFF


@dataclass(frozen=True, kw_only=True)
class KnownRecord:
    """Hold what is known of a record with a key beside its place: its business key (None: it has none that can be
    read), its headers, and the top-level fields of its value with their JSON types (None: it is no JSON object)."""

    key: bytes
    business_key: str | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class KnownKeys:
    """Record keys with the partitions in which they stand, as (partition, key), among so many `partitions`; and their
    records, in the same order."""

    partitions: int
    places: Sequence[tuple[int, bytes]]
    records: Sequence[KnownRecord] = ()


def librdkafka_name(partitioner: Partitioner) -> str:
    """Return the value of librdkafka's property `partitioner`."""
    return _LIBRDKAFKA[partitioner]


def partition_of(partitioner: Partitioner, key: bytes | None, partitions: int) -> int | None:
    """Return the partition of a key among so many; None: any, the producer draws one.

    Java's default hashes an empty key (`BuiltInPartitioner`, KIP-794), librdkafka's default does not.
    """
    if key is None or partitioner is Partitioner.RANDOM:
        return None
    if partitioner is Partitioner.MURMUR2:
        return int((murmur2(key) & _POSITIVE) % partitions)
    return crc32(key) % partitions if key else None
