"""Test where Iceberg's Kafka Connect sink stands when it was killed between its group and its table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.datasets.iceberg.sink_commits import sink_commit
from makewhole.kafka.iceberg_sink.control_topic import read_control_log, read_coordinator
from makewhole.kafka.iceberg_sink.standing import SinkSources, SinkStanding, sink_standing
from makewhole.kafka.offsets import committed
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from makewhole.tables.progress import SinkGroup
from tests.integration.conftest import MakeTopic
from tests.world.iceberg_sink import IcebergSink, Position

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


@pytest.fixture
def sink(kafka: KafkaServer, make_topic: MakeTopic, database: str, tmp_path: Path) -> Iterator[IcebergSink]:
    """A sink of two partitions, which runs."""
    made = IcebergSink(bootstrap=kafka.bootstrap, dsn=database, folder=tmp_path, topic=make_topic(2))
    made.prepare()
    made.worker.start()
    yield made
    made.worker.process.stop()


def standing(connection: KafkaConnection, sink: IcebergSink) -> SinkStanding:
    names = sink.names
    return sink_standing(
        SinkSources(
            topic=names.topic,
            table_name=sink.lake.table,
            group=names.group,
            group_offsets=committed(connection, names.group, names.topic),
            coordinator=read_coordinator(connection, names.control_topic, names.group),
            control=read_control_log(connection, names.control_topic, names.group),
            table=sink_commit(sink.table(), SinkGroup(name=names.group, control_topic=names.control_topic)),
        )
    )


def counts(of: SinkStanding) -> dict[str, tuple[int, int]]:
    """Return files and records that are to come, and that were passed over."""
    return {
        "to come": (of.to_come.files, of.to_come.records),
        "passed over": (of.passed_over.files, of.passed_over.records),
    }


def offsets_behind(positions: list[Position]) -> dict[int, int]:
    """Return the offset behind the last of the positions in each partition."""
    return {partition: offset + 1 for partition, offset in sorted(positions)}


def test_what_is_past_the_group_is_to_come_until_the_coordinator_is_forgotten(
    connection: KafkaConnection, sink: IcebergSink
) -> None:
    """Takes long: Connect is started twice."""
    first = sink.deliver(60)
    at_rest = standing(connection, sink)
    assert at_rest.next_offsets == at_rest.group_offsets == offsets_behind(first)
    assert counts(at_rest) == {"to come": (0, 0), "passed over": (0, 0)}

    held = sink.kill_between_group_and_table(40)
    killed = standing(connection, sink)
    assert killed.group_offsets == offsets_behind(held)
    assert killed.next_offsets == offsets_behind(first)
    assert counts(killed) == {"to come": (1, 40), "passed over": (0, 0)}

    sink.forget_coordinator()
    forgotten = standing(connection, sink)
    assert forgotten.next_offsets == forgotten.group_offsets == offsets_behind(held)
    assert counts(forgotten) == {"to come": (0, 0), "passed over": (1, 40)}

    sink.worker.start()
    later = sink.deliver(5)
    assert sink.rows().keys() == {*first, *later}
    lost = standing(connection, sink)
    assert lost.next_offsets == lost.group_offsets == offsets_behind([*held, *later])
    assert lost.table.offsets is not None and lost.table.offsets[0] > killed.control[0]
    assert counts(lost) == {"to come": (0, 0), "passed over": (1, 40)}


def test_what_is_past_the_group_comes_when_the_sink_is_started_again(
    connection: KafkaConnection, sink: IcebergSink
) -> None:
    """Takes long: Connect is started twice."""
    first = sink.deliver(60)
    held = sink.kill_between_group_and_table(40)
    assert counts(standing(connection, sink)) == {"to come": (1, 40), "passed over": (0, 0)}
    sink.worker.start()
    sink.wait_for_rows(held)
    assert sink.rows() == dict.fromkeys([*first, *held], 1)
    assert standing(connection, sink).next_offsets == offsets_behind(held)
    assert counts(standing(connection, sink)) == {"to come": (0, 0), "passed over": (0, 0)}


def test_what_a_rolled_back_table_lost_is_never_committed_again(connection: KafkaConnection, sink: IcebergSink) -> None:
    first, second = sink.deliver(60), sink.deliver(30)
    sink.wait_for_coordinator()
    before = sink.table().snapshots()[-2].snapshot_id
    sink.table().manage_snapshots().rollback_to_snapshot(before).commit()
    rolled_back = standing(connection, sink)
    assert rolled_back.table.snapshot_id == before
    assert rolled_back.next_offsets == offsets_behind([*first, *second])
    assert counts(rolled_back) == {"to come": (0, 0), "passed over": (1, 30)}
    later = sink.deliver(5)
    assert sink.rows().keys() == {*first, *later}
    assert counts(standing(connection, sink)) == {"to come": (0, 0), "passed over": (1, 30)}


def test_nothing_happens_when_the_coordinator_is_set_back_and_every_file_comes_twice_without_summaries(
    connection: KafkaConnection, sink: IcebergSink
) -> None:
    """Takes long: Connect is started three times."""
    first = sink.deliver(60)
    sink.worker.end()
    sink.set_coordinator(0)
    sink.worker.start()
    second = sink.deliver(30)
    assert sink.rows() == dict.fromkeys([*first, *second], 1)

    sink.wait_for_coordinator()
    sink.worker.end()
    sink.write_and_expire()
    assert standing(connection, sink).table.snapshot_id is None
    sink.set_coordinator(0)
    assert standing(connection, sink).next_offsets == dict.fromkeys(range(2), 0)
    sink.worker.start()
    later = sink.deliver(5)
    assert sink.rows() == {**dict.fromkeys([*first, *second], 2), **dict.fromkeys(later, 1)}
    names = sink.table().inspect.files().column("file_path").to_pylist()
    assert len(names) > len(set(names))
