"""Test that a topic is only taken for unchanged where its leader still has every record that was read.

The broker is killed and the end of its segment removed, as a machine does that loses power, and other records get the
same offsets: only the leader epochs tell.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from makewhole.kafka.log.batches import split_batches
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.integration.spark.test_unchanged_windows import reused, why_read
from tests.world.databases import Databases
from tests.world.environment import enter, service_environment
from tests.world.kafka_nodes import kill_node
from tests.world.kept_sessions import kept_sessions
from tests.world.orders import orders
from tests.world.topics import make_topic
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

MADE = orders(range(12))


@pytest.fixture(scope="module")
def own_kafka(server_folder: Path) -> Iterator[KafkaServer]:
    with KafkaServer(server_folder / "kafka-unchanged") as server:
        yield server


@pytest.fixture
def shop(
    carrier: Carrier,
    own_kafka: KafkaServer,
    databases: Databases,
    journal_template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ReconciledShop]:
    """A shop whose topic is on a broker of this module's own."""
    with ExitStack() as stack:
        stack.enter_context(kept_sessions())
        dsn = stack.enter_context(databases.of_a_test("test"))
        journal = stack.enter_context(databases.of_a_test("journal", template=journal_template))
        shop = ReconciledShop(carrier=carrier, bootstrap=own_kafka.bootstrap, dsn=dsn, journal=journal, folder=tmp_path)
        enter(monkeypatch, service_environment(shop, tmp_path))
        shop.describe()
        shop.make_tables()
        make_topic(shop.admin, shop.topic)
        yield shop


def trade(shop: ReconciledShop) -> None:
    """Send the orders in two batches, and have them loaded."""
    shop.write("outbox", MADE)
    shop.write("warehouse", MADE)
    shop.send(MADE[:6])
    shop.send(MADE[6:])


def start_again(server: KafkaServer, topic: str, keep: int | None = None) -> None:
    """Kill the broker and start it, with `keep` batches of the first partition; None: with all."""
    kill_node(server, 1)
    if keep is not None:
        [segment] = Path(server.directory).glob(f"node-1/data/{topic}-0/*.log")
        ends = [batch.end for batch in split_batches(segment.read_bytes())]
        assert len(ends) > keep
        with segment.open("r+b") as file:
            file.truncate(ends[keep - 1])
    server.start()


@pytest.mark.extended
def test_records_of_which_a_leader_has_lost_some_and_taken_others_are_read_again(
    shop: ReconciledShop, own_kafka: KafkaServer
) -> None:
    """Takes long: a broker starts twice, the second time with half of the topic."""
    trade(shop)
    shop.judge_and_ask_the_gate()
    start_again(own_kafka, shop.topic)
    assert reused(shop, shop.judge_and_ask_the_gate()) == {"outbox": 1, "orders": 1, "warehouse": 1}
    start_again(own_kafka, shop.topic, keep=1)
    shop.send(orders(range(50, 60)))
    third = shop.judge_and_ask_the_gate()
    assert why_read(shop, third) == {"orders": "partition 0 was cut off by a new leader"}
    assert shop.manifests(third)["orders"]["accounting"]["data"] < 12
