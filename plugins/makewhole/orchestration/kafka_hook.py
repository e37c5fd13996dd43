"""Show connections to Kafka in Airflow's form, and try whether the brokers answer."""

from typing import Any

from airflow.sdk import BaseHook

from makewhole.config.connections import from_airflow_fields
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import MakewholeError
from makewhole.orchestration.deployment.connections import described

_PATIENCE_SECONDS = 10.0


class KafkaHook(BaseHook):
    """A connection to Kafka: its extra has the settings of the client, as librdkafka names them."""

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka"

    def __init__(self, kafka_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self._connection_id = kafka_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the fields that the form has, with an example."""
        return {
            "hidden_fields": ["host", "port", "login", "password", "schema"],
            "relabeling": {"extra": "Settings of the client"},
            "placeholders": {"extra": '{"bootstrap.servers": "broker:9092", "security.protocol": "SASL_SSL"}'},
        }

    def test_connection(self) -> tuple[bool, str]:
        """Return whether the brokers answer, and a sentence about it."""
        from makewhole.kafka.wire.cluster import Cluster

        try:
            connection = from_airflow_fields(self._connection_id, **described(self._connection_id))
            assert isinstance(connection, KafkaConnection), connection.id
            with Cluster(connection, patience_seconds=_PATIENCE_SECONDS) as cluster:
                brokers = cluster.run(cluster.brokers())
        except MakewholeError as error:
            return False, str(error)
        return True, f"{len(brokers)} {'broker answers' if len(brokers) == 1 else 'brokers answer'}"
