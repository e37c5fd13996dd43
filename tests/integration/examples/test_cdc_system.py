"""Test that the pipeline of connectors really does what it says it did."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from examples.cdc.contents import rows_of
from examples.cdc.settings import CONTROL_TOPIC, GROUP, LAKE_COORDINATOR, LAKE_GROUP, SLOT, TO_TOPIC, TOPIC, Systems
from examples.cdc.system import Shop
from examples.cdc.verify import Proof, prove
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(900)]


@pytest.fixture
def cdc_systems(kafka: KafkaServer, database: str, tmp_path: Path) -> Iterator[Systems]:
    """An empty database; neither topic nor group nor slot."""
    systems = Systems(bootstrap=kafka.bootstrap, dsn=database, folder=tmp_path / "cdc")
    forget(systems)
    yield systems
    forget(systems)


@pytest.fixture
def shop(cdc_systems: Systems) -> Iterator[Shop]:
    """The example's driver; Connect is ended at the end."""
    driver = Shop(cdc_systems, seed=3, say=lambda _: None)
    yield driver
    driver.stop()


def forget(systems: Systems) -> None:
    """Remove what the example keeps in Kafka, and its slot, of which a server has one."""
    admin = AdminClient({"bootstrap.servers": systems.bootstrap})
    for deleted in admin.delete_topics([TOPIC, CONTROL_TOPIC]).values():
        with suppress(KafkaException):
            deleted.result(10)
    for deleted in admin.delete_consumer_groups([GROUP, LAKE_GROUP, LAKE_COORDINATOR]).values():
        with suppress(KafkaException):
            deleted.result(10)
    with closing(systems.database()) as database, database.cursor() as cursor:
        cursor.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", (SLOT,)
        )


def findings(proof: Proof) -> set[tuple[str, str, str]]:
    wrong = {(row["hop"], row["key"], row["verdict"]) for row in proof.wrong}
    return wrong | {(TO_TOPIC, key, "duplicate") for key in proof.repeated_in_topic}


def test_what_went_wrong_is_exactly_what_was_written_down(cdc_systems: Systems, shop: Shop) -> None:
    """Takes long: Connect is started six times, and its sink commits every twenty seconds."""
    shop.run(200)

    proof = prove(cdc_systems)
    planted = rows_of(cdc_systems, "select array[hop, key, verdict] from shop.planted")
    assert {tuple(row) for row in planted} == findings(proof)
    kinds = Counter((hop, verdict) for hop, _, verdict in planted)
    assert set(kinds) == {
        (TO_TOPIC, "missing"),
        (TO_TOPIC, "duplicate"),
        ("orders→warehouse", "missing"),
        ("orders→warehouse", "duplicate"),
        ("orders→warehouse", "mismatched"),
        ("orders→warehouse", "unexpected"),
        ("orders→lake", "missing"),
        ("orders→lake", "duplicate"),
    }


def test_without_faults_every_order_is_everywhere_once(cdc_systems: Systems, shop: Shop) -> None:
    """Takes long: Connect is started."""
    shop.run(200, with_faults=False)

    proof = prove(cdc_systems)
    assert proof.holds
    assert (proof.topic_records, proof.warehouse_rows, findings(proof)) == (proof.outbox, proof.outbox, set())
    assert (proof.lake_rows, proof.lake_orders) == (proof.outbox, proof.outbox)
