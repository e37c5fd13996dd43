"""Test that the commits of a group are found with the transaction that they were part of, and that what is not known is
not made up."""

import struct
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.compute.judge.copier_commits import CopierCommits
from makewhole.kafka.group_commits import group_commits, group_partition
from makewhole.model.connection import KafkaConnection
from tests.world.consumer import consumer
from tests.world.topics import commit_group, left_open, producer

pytestmark = pytest.mark.integration

Ranges = list[tuple[int, int | None, int, bool]]


@dataclass(frozen=True, kw_only=True)
class _Copier:
    """A group that commits in a topic of the test's own."""

    connection: KafkaConnection
    topic: str
    group: str

    @property
    def bootstrap(self) -> str:
        return str(self.connection.properties["bootstrap.servers"])

    @contextmanager
    def producer(self, name: str = "") -> Iterator[tuple[Producer, Consumer]]:
        client = producer(self.bootstrap, transactional_id=f"tx-{self.group}{name}", log_level=0)
        client.init_transactions(30)
        with consumer(self.bootstrap, self.group) as reader:
            reader.assign([TopicPartition(self.topic, 0)])
            yield client, reader

    def within(self, clients: tuple[Producer, Consumer], *offsets: tuple[int, int]) -> None:
        """Begin a transaction with the offsets of partitions."""
        client, reader = clients
        client.begin_transaction()
        client.produce(self.topic, value=b"copy", partition=0)
        wanted = [TopicPartition(self.topic, partition, offset) for partition, offset in offsets]
        client.send_offsets_to_transaction(wanted, reader.consumer_group_metadata(), 30)

    def outside(self, offset: int, partition: int = 0) -> None:
        commit_group(self.bootstrap, self.group, self.topic, offset, partition)

    def found(self) -> CopierCommits:
        return group_commits(self.connection, self.group, self.topic)

    def ranges(self) -> Ranges:
        return [(commit.partition, commit.lo, commit.hi, commit.is_within) for commit in self.found().commits]


@pytest.fixture
def copier(connection: KafkaConnection, make_topic: Callable[..., str]) -> _Copier:
    return _Copier(connection=connection, topic=make_topic(2), group=f"copier-{uuid.uuid4().hex}")


def test_commits_within_transactions_name_the_producer_and_those_that_were_aborted_do_not_stand(
    copier: _Copier,
) -> None:
    with copier.producer() as clients:
        for at, is_committed in ((10, True), (99, False), (20, True)):
            copier.within(clients, (0, at), (1, at + 1))
            clients[0].commit_transaction(30) if is_committed else clients[0].abort_transaction(30)

    assert copier.ranges() == [
        (0, 0, 10, True),
        (1, 0, 11, True),
        (0, 10, 20, True),
        (1, 11, 21, True),
    ]
    group = copier.found()
    assert group.is_whole
    assert len({(commit.producer_id, commit.producer_epoch) for commit in group.commits}) == 1
    assert all(commit.producer_id is not None and commit.producer_id >= 0 for commit in group.commits)


def test_commits_outside_have_no_producer_and_a_group_that_is_set_back_covers_nothing_with_that(
    copier: _Copier,
) -> None:
    for offset in (10, 4, 12):
        copier.outside(offset)

    group = copier.found()

    assert copier.ranges() == [(0, 0, 10, False), (0, 10, 4, False), (0, 4, 12, False)]
    assert [len(group.covering(0, offset)) for offset in (0, 4, 9, 10, 12)] == [1, 2, 2, 1, 0]
    assert group.covering(1, 0) == []
    assert group.passed_outside([(0, 3), (0, 11)])
    assert not group.passed_outside([(0, 3), (0, 12)])
    assert not group.passed_outside([])


def test_an_offset_that_a_transaction_covers_too_is_not_passed_outside(copier: _Copier) -> None:
    with copier.producer() as clients:
        copier.within(clients, (0, 10))
        clients[0].commit_transaction(30)
    copier.outside(5)
    copier.outside(20)

    group = copier.found()

    assert [commit.is_within for commit in group.covering(0, 7)] == [True, False]
    assert not group.passed_outside([(0, 7)])
    assert group.passed_outside([(0, 15)])


def test_a_commit_of_an_open_transaction_does_not_stand_until_it_ends(copier: _Copier) -> None:
    with copier.producer() as clients:
        copier.within(clients, (0, 10))
        copier.outside(6, partition=1)
        assert copier.ranges() == [(1, 0, 6, False)]
        clients[0].commit_transaction(30)
        left_open(copier.bootstrap, copier.topic)

    assert copier.ranges() == [(1, 0, 6, False), (0, 0, 10, True)]


def test_what_came_before_a_deleted_group_is_not_what_its_next_commit_covers(
    copier: _Copier, admin: AdminClient
) -> None:
    copier.outside(10)
    admin.delete_consumer_groups([copier.group])[copier.group].result(30)
    copier.outside(15)

    assert copier.ranges() == [(0, 0, 10, False), (0, None, 15, False)]
    assert not copier.found().passed_outside([(0, 12)])


def test_other_groups_and_other_topics_are_left_out(copier: _Copier, make_topic: Callable[..., str]) -> None:
    other = make_topic(2)
    commit_group(copier.bootstrap, copier.group, other, 3)
    commit_group(copier.bootstrap, f"{copier.group}-2", copier.topic, 4)
    copier.outside(5)

    assert copier.ranges() == [(0, 0, 5, False)]


def test_a_group_that_has_committed_nothing_has_no_commits(copier: _Copier) -> None:
    assert copier.found().commits == ()


def test_a_group_whose_name_is_not_ascii_is_found(connection: KafkaConnection, make_topic: Callable[..., str]) -> None:
    # A letter beyond the first plane is two units for Java's hash.
    named = _Copier(connection=connection, topic=make_topic(), group=f"copier-é𝄞-{uuid.uuid4().hex}")
    named.outside(7)

    assert named.ranges() == [(0, 0, 7, False)]


def test_what_compaction_took_is_not_known(copier: _Copier, make_topic: Callable[..., str]) -> None:
    log = make_topic(
        cleanup_policy="compact", segment_ms="300", min_cleanable_dirty_ratio="0.001", delete_retention_ms="100"
    )
    client = producer(copier.bootstrap, enable_idempotence=True, linger_ms=5)

    def commit(offset: int) -> None:
        client.produce(log, key=_key(copier, 0), value=struct.pack(">hqi", 3, offset, -1))
        assert client.flush(30) == 0

    def found() -> CopierCommits:
        return group_commits(copier.connection, copier.group, copier.topic, log=log)

    commit(10)
    commit(20)
    assert [(known.lo, known.hi) for known in found().commits] == [(0, 10), (10, 20)]
    offset, deadline = 30, time.monotonic() + 60
    while found().is_whole:
        assert time.monotonic() < deadline
        time.sleep(0.5)
        commit(offset)
        offset += 10
    commits = found().commits

    assert commits[0].lo is None
    assert all(known.lo is None or known.lo == known.hi - 10 for known in commits)
    assert commits[-1].hi == offset - 10
    assert not found().passed_outside([(0, 5)])
    commit(offset)
    assert (found().commits[-1].lo, found().commits[-1].hi) == (offset - 10, offset)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_commits_are_found_in_batches_of_many_records(
    copier: _Copier, make_topic: Callable[..., str], codec: str
) -> None:
    log = make_topic()
    client = producer(copier.bootstrap, linger_ms=60_000, compression_type=codec)
    other = _Copier(connection=copier.connection, topic=copier.topic, group=f"{copier.group}-2")
    for offset in range(1, 101):
        for member in (copier, other):
            client.produce(log, key=_key(member, offset % 2), value=struct.pack(">hqi", 3, offset, -1))
    assert client.flush(30) == 0

    group = group_commits(copier.connection, copier.group, copier.topic, log=log)

    assert [(commit.partition, commit.lo, commit.hi) for commit in group.commits] == [
        (offset % 2, max(offset - 2, 0), offset) for offset in range(1, 101)
    ]


def test_a_topic_of_commits_that_is_not_there_has_none(copier: _Copier) -> None:
    assert group_commits(copier.connection, "g", copier.topic, log="no-such-log") == CopierCommits(
        group="g", is_whole=True
    )


# Java: "…".hashCode(); the second one's is Integer.MIN_VALUE, which has no absolute value.
@pytest.mark.parametrize(
    ("group", "partition"), [("", 0), ("polygenelubricants", 0), ("a", 97 % 50), ("hello", 99162322 % 50)]
)
def test_a_group_is_in_the_partition_of_javas_hash(group: str, partition: int) -> None:
    assert group_partition(group, 50) == partition


def _key(copier: _Copier, partition: int) -> bytes:
    group, topic = copier.group.encode(), copier.topic.encode()
    return struct.pack(f">hh{len(group)}sh{len(topic)}si", 1, len(group), group, len(topic), topic, partition)
