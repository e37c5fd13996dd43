"""Write the properties of the three connectors: Debezium's source, its JDBC sink, and Iceberg's sink."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from examples.cdc.lake import CATALOG, LakeTable
from examples.cdc.settings import LAKE_SINK, SINK, SLOT, SOURCE, TOPIC, Systems

Properties = Mapping[str, Any]
# A killed task is noticed after six seconds, not after 45.
_NOTICED = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}


def all_connectors(systems: Systems) -> Mapping[str, Properties]:
    """Return the connectors of the example, by name."""
    lake = lake_sink(systems.lake, name=LAKE_SINK, topic=TOPIC, database=systems.dsn)
    return {SOURCE: _source(systems.dsn), SINK: _warehouse_sink(systems.dsn), LAKE_SINK: lake}


def lake_sink(lake: LakeTable, *, name: str, topic: str, database: str, tasks: int = 1) -> Properties:
    """Return Iceberg's sink of a topic into the lake's table, with each record's position in its row."""
    url = urlsplit(database)
    kafka = {f"iceberg.kafka.{key}": value for key, value in _NOTICED.items()}
    return {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": tasks,
        "topics": topic,
        "iceberg.tables": lake.table,
        "iceberg.catalog": CATALOG,
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "iceberg.catalog.jdbc.user": unquote(url.username or ""),
        "iceberg.catalog.jdbc.password": unquote(url.password or ""),
        "iceberg.catalog.jdbc.schema-version": "V1",
        "iceberg.catalog.warehouse": lake.warehouse,
        "iceberg.control.topic": lake.control_topic,
        "iceberg.control.commit.interval-ms": lake.commit_ms,
        "iceberg.control.commit.timeout-ms": 10_000,
        **kafka,
        "transforms": "position",
        "transforms.position.type": "org.apache.iceberg.connect.transforms.KafkaMetadataTransform",
        "transforms.position.field_name": "_kafka_metadata",
        "transforms.position.nested": "true",
    }


def _source(database: str) -> Properties:
    url = urlsplit(database)
    return {
        "name": SOURCE,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": 1,
        "plugin.name": "pgoutput",
        "database.hostname": url.hostname,
        "database.port": url.port,
        "database.user": unquote(url.username or ""),
        "database.password": unquote(url.password or ""),
        "database.dbname": unquote(url.path.lstrip("/")),
        "topic.prefix": "shop",
        "table.include.list": "shop.outbox",
        "slot.name": SLOT,
        "publication.autocreate.mode": "filtered",
        "snapshot.mode": "no_data",
        "poll.interval.ms": 100,
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.route.topic.replacement": "shop.${routedByValue}",
        "transforms.outbox.table.expand.json.payload": "true",
    }


def _warehouse_sink(database: str) -> Properties:
    url = urlsplit(database)
    return {
        "name": SINK,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": 1,
        "topics": TOPIC,
        "connection.url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "connection.username": unquote(url.username or ""),
        "connection.password": unquote(url.password or ""),
        "insert.mode": "insert",
        "primary.key.mode": "none",
        "schema.evolution": "none",
        "collection.name.format": "dw.orders",
    }
