"""Test that keys are put where producers put them; tests/integration/kafka/test_partitioner.py asks real ones."""

import pytest

from makewhole.kafka.partitioner import partition_of
from makewhole.model.points import Partitioner

pytestmark = pytest.mark.unit

_PRIME = 2_147_483_647
"""So many partitions that the partition shows the hash: the largest number that Java's clients can have."""


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_the_one_of_javas_own_tests(key: bytes, murmur2: int) -> None:
    """The numbers are those of Kafka's `UtilsTest.testMurmur2`."""
    assert partition_of(Partitioner.MURMUR2, key, _PRIME) == (murmur2 & 0x7FFFFFFF) % _PRIME


def test_crc32_has_its_check_value() -> None:
    assert partition_of(Partitioner.CRC32, b"123456789", 1 << 32) == 0xCBF43926


def test_a_key_without_a_place_of_its_own_goes_anywhere() -> None:
    for partitioner in Partitioner:
        assert partition_of(partitioner, None, 4) is None
    assert partition_of(Partitioner.RANDOM, b"k", 4) is None
    assert partition_of(Partitioner.CRC32, b"", 4) is None
    assert partition_of(Partitioner.MURMUR2, b"", 4) is not None


def test_one_partition_takes_every_key() -> None:
    assert {partition_of(partitioner, b"k", 1) for partitioner in (Partitioner.MURMUR2, Partitioner.CRC32)} == {0}
