"""Test the choice of a partition, and what forbids it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from makewhole.compensation.freezing.choose_partition import PartitionChooser
from makewhole.compensation.sources.sources import SourceRecord, Sources
from makewhole.kafka.partitioner import KnownKeys, partition_of
from makewhole.model.actions import Payload, PayloadExtra, ProduceExtra
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Partitioner, TopicPoint

pytestmark = pytest.mark.unit

KEYS = [f"K{number}".encode() for number in range(20)]
MURMUR2, CRC32, RANDOM = Partitioner.MURMUR2, Partitioner.CRC32, Partitioner.RANDOM


@dataclass
class Topic:
    """A topic of so many partitions now; `known` raised instead when it is an error. `asked` counts the readings."""

    partitions: int = 4
    known: KnownKeys | Exception | None = None
    asked: list[str] = field(default_factory=list)

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterable[SourceRecord]:
        raise AssertionError(f"no caller asks for records of {point}: {positions}")

    def removed(self, point: str) -> str | None:
        return None

    def partition_count(self, point: str) -> int:
        assert point == "flights"
        return self.partitions

    def known_keys(self, point: str) -> KnownKeys | None:
        self.asked.append(point)
        if isinstance(self.known, Exception):
            raise self.known
        return self.known


def placed(partitioner: Partitioner, partitions: int = 4, keys: Sequence[bytes] = KEYS) -> KnownKeys:
    """Return keys where a partitioner puts them."""
    places = [(partition_of(partitioner, key, partitions) or 0, key) for key in keys]
    return KnownKeys(partitions=partitions, places=places)


def chooser(topic: Topic, partitioner: Partitioner = MURMUR2) -> PartitionChooser:
    point = TopicPoint(name="flights", connection="kafka", topic="t", key=("$.id",), partitioner=partitioner)
    return PartitionChooser(Sources(Pipeline(name="p", points={"flights": point}, hops=()), topic, {}))


@pytest.mark.parametrize("partitioner", [MURMUR2, CRC32])
def test_the_partition_is_that_of_the_points_partitioner_and_kept_with_the_number_of_partitions(
    partitioner: Partitioner,
) -> None:
    topic = Topic(known=placed(partitioner))
    chosen = [
        chooser(topic, partitioner).choose("flights", Payload(key=key, extra=PayloadExtra(origin="x"))) for key in KEYS
    ]
    assert [action.partition for action in chosen] == [partition_of(partitioner, key, 4) for key in KEYS]
    assert {action.extra for action in chosen} == {ProduceExtra(origin="x", partition_count=4)}


@pytest.mark.parametrize(("partitioner", "key"), [(RANDOM, b"k"), (CRC32, b""), (MURMUR2, None)])
def test_a_record_that_may_go_anywhere_is_left_to_the_producer(partitioner: Partitioner, key: bytes | None) -> None:
    payload = Payload(key=key)
    assert chooser(Topic(), partitioner).choose("flights", payload) is payload


def test_with_random_the_known_keys_are_not_even_read() -> None:
    topic = Topic(known=CorruptionError("gone"))
    chooser(topic, RANDOM).choose("flights", Payload(key=b"k"))
    assert topic.asked == []


def test_where_no_key_is_known_the_points_partitioner_is_believed() -> None:
    assert chooser(Topic(known=None)).choose("flights", Payload(key=b"K1")).partition == partition_of(MURMUR2, b"K1", 4)


def test_one_key_elsewhere_refuses_everything_for_the_topic_and_keys_are_read_once() -> None:
    known = placed(MURMUR2)
    (partition, key), *others = known.places
    topic = Topic(known=KnownKeys(partitions=4, places=[((partition + 1) % 4, key), *others]))
    chosen = chooser(topic)
    for wanted in KEYS[:3]:
        with pytest.raises(RefusedError) as caught:
            chosen.choose("flights", Payload(key=wanted))
        assert str(caught.value) == (
            "unfit: 1 of the last 20 keys in t do not stand where partitioner murmur2 puts them among 4 partitions; "
            "no partitioner that is known here does: send these records with the system's own producer, or write "
            "'partitioner: random' on point flights if any partition will do"
        )
    assert topic.asked == ["flights"]


@pytest.mark.parametrize(("wrong", "right"), [(MURMUR2, CRC32), (CRC32, MURMUR2)])
def test_the_reason_names_the_partitioner_that_fits(wrong: Partitioner, right: Partitioner) -> None:
    known = placed(right)
    misfits = sum(partition != partition_of(wrong, key, 4) for partition, key in known.places)
    with pytest.raises(RefusedError) as caught:
        chooser(Topic(known=known), wrong).choose("flights", Payload(key=b"k"))
    assert str(caught.value) == (
        f"unfit: {misfits} of the last 20 keys in t do not stand where partitioner {wrong} puts them among 4 "
        f"partitions; {right} puts all of them there: write 'partitioner: {right}' on point flights"
    )


def test_keys_of_a_time_with_fewer_partitions_are_judged_by_their_own_number() -> None:
    topic = Topic(partitions=7, known=placed(MURMUR2, partitions=2))
    assert chooser(topic).choose("flights", Payload(key=b"K5")).partition == partition_of(MURMUR2, b"K5", 7)


def test_an_empty_key_shows_nothing_of_crc32() -> None:
    """librdkafka draws a partition for it."""
    known = KnownKeys(partitions=4, places=[(1, b""), (3, b""), *placed(CRC32).places])
    assert chooser(Topic(known=known), CRC32).choose("flights", Payload(key=b"k")).partition is not None


@pytest.mark.parametrize("error", [CorruptionError("the archive is damaged"), RefusedError("the archive is damaged")])
def test_nothing_is_produced_when_the_known_keys_cannot_be_read(error: Exception) -> None:
    with pytest.raises(RefusedError) as caught:
        chooser(Topic(known=error)).choose("flights", Payload(key=b"k"))
    assert str(caught.value) == (
        "not known: into which partitions the producers of t put their keys: the archive is damaged"
    )
