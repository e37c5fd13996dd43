"""Start three brokers and a PostgreSQL that waits for its disk, and make a pipeline that rests on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer
from makewhole_spark.carrier import Carrier
from tests.integration.window.delivery.findings import RIGHT
from tests.world.databases import Databases
from tests.world.environment import enter, service_environment
from tests.world.orders import orders
from tests.world.topics import commit_group, make_topic
from tests.world.windows import ReconciledShop


@pytest.fixture(scope="session")
def brokers(server_folder: Path) -> Iterator[KafkaServer]:
    """Three brokers, as a clean pipeline needs them."""
    server = KafkaServer(server_folder / "three", nodes=3, heap_mb=256)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def durable(server_folder: Path) -> Iterator[Databases]:
    """A PostgreSQL that waits for its disk."""
    server = PostgresServer(server_folder / "durable", is_durable=True)
    server.start()
    made = Databases(server.dsn)
    yield made
    made.close()
    server.stop()


@pytest.fixture
def clean(
    carrier: Carrier,
    brokers: KafkaServer,
    durable: Databases,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ReconciledShop]:
    """A pipeline that claims at least once, and rests on nothing that is too little for that: five orders went from an
    idempotent producer into the store, and its group has read them."""
    with durable.of_a_test("test") as dsn:
        shop = ReconciledShop(carrier=carrier, bootstrap=brokers.bootstrap, dsn=dsn, journal=journal, folder=tmp_path)
        enter(monkeypatch, service_environment(shop, tmp_path))
        shop.describe(hop={"consumer_group": shop.topic})
        shop.make_tables()
        make_topic(shop.admin, shop.topic, replicas=3, settings=RIGHT)
        made = orders(range(5))
        shop.write("outbox", made)
        shop.send(made, settings={"enable.idempotence": True})
        shop.write("warehouse", made)
        commit_group(shop.bootstrap, shop.topic, shop.topic, 5)
        yield shop
