"""Test what is found of a ledger whose changes a connector reads from its replication slot."""

import uuid

import psycopg2
import pytest

from tests.integration.window.delivery.findings import BROKEN, RISK, found
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def captured(shop: ReconciledShop) -> None:
    """Have the topic's values be Debezium's change events of the ledger."""
    shop.format = {"value": "debezium"}
    shop.describe(hop={"consumer_group": shop.topic}, is_observing=True)


def test_what_keeps_changes_from_a_connector_is_found(clean: ReconciledShop) -> None:
    slot = f"s_{uuid.uuid4().hex}"
    captured(clean)
    assert found(clean) == [(BROKEN, "replication slot"), (RISK, "replica identity")]
    clean.sql("alter table outbox add primary key (id)")
    clean.sql(f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    try:
        assert found(clean) == [(BROKEN, "publication"), (RISK, "active")]
        clean.sql("create publication p for table outbox with (publish = 'insert')")
        assert found(clean) == [(RISK, "active"), (RISK, "publication")]
        clean.sql("alter publication p set (publish = 'insert, update, delete, truncate')")
        assert found(clean) == [(RISK, "active")]
        clean.sql("alter table outbox replica identity nothing")
        assert found(clean) == [(RISK, "active"), (RISK, "replica identity")]
        clean.sql("alter table outbox replica identity default")
        lose(clean)
        assert found(clean) == [(BROKEN, "wal_status")]
    finally:
        clean.sql(f"select pg_drop_replication_slot('{slot}')")
        settle(clean, "alter system reset max_slot_wal_keep_size")


def lose(shop: ReconciledShop) -> None:
    """Have the server remove the log that its slot needs."""
    settle(shop, "alter system set max_slot_wal_keep_size = '1MB'")
    for _ in range(4):
        shop.sql("select pg_logical_emit_message(false, 'x', repeat('x', 1000))")
        shop.sql("select pg_switch_wal()")
    settle(shop, "checkpoint")


def settle(shop: ReconciledShop, statement: str) -> None:
    """Run a statement that no transaction can hold, and have the server read its settings."""
    session = psycopg2.connect(shop.dsn)
    session.autocommit = True
    with session.cursor() as cursor:
        cursor.execute(statement)
        cursor.execute("select pg_reload_conf()")
    session.close()
