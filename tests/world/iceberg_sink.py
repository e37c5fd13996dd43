"""Run Iceberg's Kafka Connect sink over a topic of a test's own, and kill it between its group and its table."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyiceberg.table import Table

from examples.cdc.connectors import lake_sink
from examples.cdc.lake import CATALOG, POSITION, LakeTable
from examples.cdc.offsets import forget_group, has_members, set_offsets
from examples.cdc.settings import Systems
from examples.cdc.worker import Worker, wait_for
from makewhole.kafka.offsets import committed, stable_offsets
from tests.world.iceberg_lake import ORDERS
from tests.world.orders import orders
from tests.world.topics import kafka_connection, make_topic

Position = tuple[int, int]
_ANSWER_SECONDS = 30.0
_PLAIN_JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_COLUMNS = ORDERS.append(pa.field("_kafka_metadata", POSITION))


@dataclass(frozen=True, kw_only=True)
class SinkNames:
    """The names of a sink's own: those of its connector, its topic and its control topic."""

    connector: str
    topic: str
    control_topic: str

    @property
    def group(self) -> str:
        """The consumer group of the sink's tasks."""
        return f"connect-{self.connector}"

    @property
    def coordinator(self) -> str:
        """The consumer group of its coordinator."""
        return f"{self.group}-coord"


class IcebergSink:
    """The sink with its topic, its control topic and its lake; nothing of it runs before `start`."""

    def __init__(self, *, bootstrap: str, dsn: str, folder: Path, topic: str, tasks: int = 1) -> None:
        self.names = SinkNames(connector=f"sink-{topic}", topic=topic, control_topic=f"control-{topic}")
        self.lake = LakeTable(dsn=dsn, folder=folder / "lake", control_topic=self.names.control_topic, commit_ms=1_000)
        self._bootstrap, self._dsn, self._sent = bootstrap, dsn, 0
        systems = Systems(bootstrap=bootstrap, dsn=dsn, folder=folder / "connect")
        connector = lake_sink(self.lake, name=self.names.connector, topic=topic, database=dsn, tasks=tasks)
        self.worker = Worker(systems, {self.names.connector: {**connector, **_PLAIN_JSON}})
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})

    @property
    def described(self) -> str:
        """The Airflow connection to the catalogue, as JSON."""
        uri = self._dsn.replace("postgresql://", "postgresql+psycopg2://", 1)
        extra = {"type": "sql", "uri": uri, "warehouse": self.lake.warehouse}
        return json.dumps({"conn_type": "iceberg", "schema": CATALOG, "extra": extra})

    def prepare(self) -> None:
        """Make the table and the control topic."""
        self.lake.create(_COLUMNS)
        make_topic(self.admin, self.names.control_topic, 1)

    # -- what goes right -------------------------------------------------------------------------------------------

    def send(self, count: int) -> list[Position]:
        """Send some orders; return their positions."""
        positions: list[Position] = []
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for order in orders(range(self._sent, self._sent + count)):
            producer.produce(
                self.names.topic,
                key=order["id"],
                value=json.dumps(order),
                on_delivery=lambda _, message: positions.append((message.partition() or 0, message.offset() or 0)),
            )
        assert producer.flush(_ANSWER_SECONDS) == 0
        self._sent += count
        return sorted(positions)

    def deliver(self, count: int) -> list[Position]:
        """Send some orders, and wait until each has a row and the coordinator has noted it."""
        positions = self.send(count)
        self.wait_for_rows(positions)
        return positions

    def wait_for_coordinator(self) -> None:
        """Wait until the coordinator has committed its own offset behind every event of the files in the table."""
        names = self.names

        def has_passed() -> bool:
            noted = self.committed(names.coordinator, names.control_topic)
            return noted.get(0, 0) >= self.lake.control_offsets(names.group)[0]

        wait_for("the coordinator to commit its offset", has_passed)

    def wait_for_all(self) -> None:
        """Wait until each record of the topic has one row, and the coordinator has noted it."""
        wait_for(
            "the sink to load all records",
            lambda: self._is_at_the_end() and self.rows().total() == sum(self._ends().values()),
        )
        self.wait_for_coordinator()

    def wait_until_the_coordinator_is_past(self) -> None:
        """Wait until the coordinator has committed an offset behind every event that is in the control topic now."""
        names, kafka = self.names, kafka_connection(self._bootstrap)
        ends = stable_offsets(kafka, names.control_topic)
        wait_for(
            "the coordinator to be past the events",
            lambda: self.committed(names.coordinator, names.control_topic).get(0, 0) >= ends[0],
        )

    def replace_table(self) -> None:
        """Drop the table, and create one of its name."""
        self.lake.catalog().drop_table(self.lake.table)
        self.lake.create(_COLUMNS)

    def write_and_expire(self) -> None:
        """Leave no summary of the sink in the table."""
        self.lake.forget_summaries()

    def wait_for_rows(self, positions: list[Position]) -> None:
        wait_for("the sink to load its records", lambda: set(positions) <= self.rows().keys())

    def wait_for_orders(self, keys: Iterable[str]) -> None:
        """Wait until each order has a row."""
        wanted = set(keys)

        def are_there() -> bool:
            rows = self.table().scan(selected_fields=("id",)).to_arrow()
            return wanted <= set(rows.column("id").to_pylist())

        wait_for("the sink to load its orders", are_there)

    def rows(self) -> Counter[Position]:
        """Count the rows of each position in the table."""
        return self.lake.positions()

    def table(self) -> Table:
        return self.lake.load()

    # -- its groups ------------------------------------------------------------------------------------------------

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the offsets that a group has committed in a topic."""
        offsets = committed(kafka_connection(self._bootstrap), group, topic)
        return {partition: offset for partition, offset in offsets.items() if offset is not None}

    def forget_coordinator(self) -> None:
        """Delete the group of the coordinator, as its retention does."""
        self._wait_until_the_coordinator_is_gone()
        forget_group(self.admin, self.names.coordinator)

    def set_coordinator(self, offset: int) -> None:
        """Set the group of the coordinator to an offset of the control topic."""
        self._wait_until_the_coordinator_is_gone()
        set_offsets(self.admin, self.names.coordinator, [TopicPartition(self.names.control_topic, 0, offset)])

    def _wait_until_the_coordinator_is_gone(self) -> None:
        wait_for("the coordinator to be gone", lambda: not has_members(self.admin, self.names.coordinator))

    # -- its weak points -------------------------------------------------------------------------------------------

    def kill_between_group_and_table(self, count: int) -> list[Position]:
        """Send some orders, and kill the sink when its group is past them and its table has none of them."""
        with self.killed_before_its_commit():
            return self.send(count)

    @contextmanager
    def killed_before_its_commit(self) -> Iterator[None]:
        """Kill the sink when its group is past every record of the topic, and its table has none of those sent within
        this block. They are there before it reads any: a part of them would be a commit that is held up."""
        self.worker.stop_connector(self.names.connector)
        yield
        with self.lake.commits_held():
            self.worker.resume_connector(self.names.connector)
            wait_for("the group to be past the records", self._is_at_the_end)
            self.worker.kill()

    def _is_at_the_end(self) -> bool:
        standing = self.committed(self.names.group, self.names.topic)
        return all(standing.get(partition) == end for partition, end in self._ends().items() if end)

    def _ends(self) -> dict[int, int]:
        return dict(stable_offsets(kafka_connection(self._bootstrap), self.names.topic))
