"""Test a log that is cut back: before its range was read, and while it is read.

The broker is killed and the end of its segment removed, as a machine does that loses power: it comes back as leader of
a later epoch with a shorter log. Nothing is mocked; no second replica is needed.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.compensation.execution.look_again.topic_tail import FollowedTopic, TopicTail
from makewhole.kafka.group_offsets import read_group_offsets
from makewhole.kafka.lineage import epochs_of
from makewhole.kafka.log.batches import split_batches
from makewhole.kafka.log.reader import ArchiveLog, BrokerLog, SegmentWriter, read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import TransientError
from makewhole.model.points import TopicPoint
from makewhole.model.positions import SeenLog
from makewhole.model.window import Accounting, PartitionRange
from makewhole.stack.kafka_server import KafkaServer
from makewhole.window.opening.observe import read_topic_state
from tests.integration.kafka.records import produce
from tests.world.consumer import consumer
from tests.world.kafka_nodes import kill_node

pytestmark = pytest.mark.integration


class Losing:
    """A broker of one node that can lose the end of its log, and a topic on it with a batch every ten offsets."""

    def __init__(self, server: KafkaServer, topic: str) -> None:
        self.server, self.topic = server, topic
        self.connection = KafkaConnection(id="losing", properties={"bootstrap.servers": server.bootstrap})
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()

    def produce(self, count: int) -> None:
        for start in range(0, count, 10):
            produce(self.server.bootstrap, self.topic, 10, start=start, linger_ms=100)

    def frozen(self) -> PartitionRange:
        """All that is stable now, with its leader epochs, as a window keeps it."""
        with TopicLog(self.connection, self.topic) as log:
            end = log.stable_ends()[0]
            epochs = epochs_of(lambda epoch: log.end_of_leader_epoch(0, epoch), end.leader_epoch, 0, end.offset)
            return PartitionRange(
                topic=self.topic,
                topic_id=log.describe().topic_id,
                partition=0,
                lo=0,
                hi=end.offset,
                leader_epochs=epochs,
            )

    def read_and_commit(self, group: str, count: int, *, with_epoch: bool = True) -> None:
        """Commit what a consumer of a group has read, by its message; or by its offset alone, as older clients do."""
        with consumer(self.server.bootstrap, group) as client:
            client.assign([TopicPartition(self.topic, 0, 0)])
            messages = [message for message in iter(lambda: client.poll(10), None) if message.error() is None]
            last = messages[count - 1]
            alone = [TopicPartition(self.topic, 0, count)]
            client.commit(**({"message": last} if with_epoch else {"offsets": alone}), asynchronous=False)

    def standing(self, group: str) -> int | None:
        with TopicLog(self.connection, self.topic) as log:
            return read_group_offsets(log, group).committed[0]

    def lose_from(self, offset: int) -> None:
        kill_node(self.server, 1)
        [segment] = Path(self.server.directory).glob(f"node-1/data/{self.topic}-0/*.log")
        kept = [batch.end for batch in split_batches(segment.read_bytes()) if batch.base_offset < offset]
        with segment.open("r+b") as file:
            file.truncate(kept[-1])
        self.server.start()


@pytest.fixture(scope="module")
def server(server_folder: Path) -> Iterator[KafkaServer]:
    with KafkaServer(server_folder / "kafka-losing") as server:
        yield server


@pytest.fixture
def losing(server: KafkaServer, request: pytest.FixtureRequest) -> Losing:
    return Losing(server, request.node.name)


def offsets(reader) -> list[int]:  # type: ignore[no-untyped-def]
    return [offset for batch in reader for offset in batch.column("offset").to_pylist()]


@pytest.mark.extended
def test_offsets_truncated_after_the_freezing_are_expired_and_named(losing: Losing, tmp_path: Path) -> None:
    """Takes long: a broker starts, loses the end of its log, and starts again."""
    losing.produce(100)
    frozen = losing.frozen()
    assert len(frozen.leader_epochs) == 1
    losing.lose_from(60)
    unknown = PartitionRange(topic=frozen.topic, topic_id=frozen.topic_id, partition=0, lo=0, hi=100)
    with BrokerLog(losing.connection, patience_seconds=2) as log:
        writer = SegmentWriter(str(tmp_path), frozen)
        reader = read_range(log, frozen, on_fetched=writer.write)
        assert offsets(reader) == list(range(60))
        assert reader.accounting == Accounting(span=100, data=60, expired=40)
        assert reader.truncated == ((60, 100),)
        writer.finish(reader.expired, reader.aborted, truncated=reader.truncated)
        # Without the epochs nothing says whether these offsets ever were: that stays open, and is never read short.
        with pytest.raises(TransientError, match=r"offset 60 of \[0, 100\) cannot be read, the log ends before it"):
            offsets(read_range(log, unknown))
        losing.produce(100)  # the offsets 60 to 99 are given away again
        reader = read_range(log, frozen)
        assert offsets(reader) == list(range(60))
        assert reader.truncated == ((60, 100),)
        assert len(offsets(read_range(log, losing.frozen()))) == 160
    again = read_range(ArchiveLog(str(tmp_path)), frozen)
    assert offsets(again) == list(range(60))
    assert (again.accounting, again.truncated) == (Accounting(span=100, data=60, expired=40), ((60, 100),))


@pytest.mark.extended
def test_a_truncation_in_mid_scan_is_noticed_and_names_its_place(losing: Losing) -> None:
    losing.produce(300)
    known = losing.frozen()
    unknown = PartitionRange(topic=known.topic, topic_id=known.topic_id, partition=0, lo=0, hi=300)
    with BrokerLog(losing.connection, page_bytes=1) as log:
        rows = read_range(log, unknown, max_records=10).batches()
        seen = [next(rows).column("offset")[0].as_py() for _ in range(20)]
        assert seen == list(range(0, 200, 10))
        losing.lose_from(150)
        losing.produce(200)
        place = r"partition 0: a change of leader cut the log back to offset 150 while \[0, 300\) was read; the read "
        with pytest.raises(TransientError, match=place + r"stood at offset 2[123]0, behind a batch of leader epoch "):
            list(rows)
        reader = read_range(log, known)
        assert offsets(reader) == list(range(150))
        assert reader.truncated == ((150, 300),)


@pytest.mark.extended
def test_what_came_at_offsets_that_were_given_away_again_has_arrived(losing: Losing) -> None:
    """Takes long: a broker starts, loses the end of its log, and starts again."""
    losing.produce(100)
    with TopicLog(losing.connection, losing.topic) as log:
        observed = read_topic_state(log)
    losing.lose_from(60)
    produce(losing.server.bootstrap, losing.topic, 80, start=200)
    seen = SeenLog(topic_id=observed.state.topic_id, offsets={0: 100}, leader_epochs=observed.epochs)
    point = TopicPoint(name="orders", connection="losing", topic=losing.topic, key=("kafka.key",))
    keys = pl.Series("key", ["k000050", "k000070", "k000210", "k000270"])

    with TopicTail(FollowedTopic(connection=losing.connection, point=point), seen, keys) as tail:
        places = tail.read_on()

    assert (dict(places), tail.not_known) == ({"k000210": "0:70", "k000270": "0:130"}, None)


@pytest.mark.extended
def test_a_log_of_which_nothing_that_was_seen_is_left_says_nothing(losing: Losing) -> None:
    losing.produce(10)
    losing.lose_from(10)  # its leader has another epoch now
    losing.produce(100)
    with TopicLog(losing.connection, losing.topic) as log:
        observed = read_topic_state(log)
    assert [epoch for epoch, _ in observed.epochs[0]] != [0]
    seen = SeenLog(topic_id=observed.state.topic_id, offsets={0: 50}, leader_epochs={0: ((99, 50),)})
    point = TopicPoint(name="orders", connection="losing", topic=losing.topic, key=("kafka.key",))
    keys = pl.Series("key", ["k000050"])

    with TopicTail(FollowedTopic(connection=losing.connection, point=point), seen, keys) as tail:
        assert dict(tail.read_on()) == {"k000050": "0:60"}

    assert tail.not_known == f"{losing.topic} partition 0 was cut off before 50, and where is not known"


@pytest.mark.extended
def test_a_group_is_past_nothing_that_came_where_its_log_was_cut_off(losing: Losing) -> None:
    """Takes long: a broker starts, loses the end of its log, and starts again."""
    losing.produce(100)
    losing.read_and_commit("checked", 100)
    losing.read_and_commit("behind", 50)
    losing.read_and_commit("unchecked", 100, with_epoch=False)
    assert [losing.standing(group) for group in ("checked", "behind", "unchecked")] == [100, 50, 100]
    losing.lose_from(60)
    losing.produce(100)  # the offsets 60 to 99 are given away again
    assert [losing.standing(group) for group in ("checked", "behind", "unchecked")] == [60, 50, 100]
    with TopicLog(losing.connection, losing.topic) as log:
        assert log.committed_with_epochs("unchecked")[0] == (100, -1)
        [beyond] = read_group_offsets(log, "checked").out_of_range.values()
    assert beyond.log_text == "was cut off at 60 since"

    losing.read_and_commit("checked", 120)
    assert losing.standing("checked") == 120


@pytest.mark.extended
def test_a_group_that_read_a_leader_of_which_nothing_is_left_stands_nowhere(losing: Losing) -> None:
    losing.produce(50)
    losing.lose_from(50)  # its leader has another epoch now
    losing.produce(50)
    losing.read_and_commit("checked", 100)
    assert losing.standing("checked") == 100
    losing.lose_from(50)
    losing.produce(100)
    assert losing.standing("checked") is None
