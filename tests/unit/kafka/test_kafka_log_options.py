"""Test the options of the Spark data source: read, or refused all at once without a value in the message."""

import json
import pickle

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError
from makewhole_spark.kafka_log.options import COLUMNS, LogOptions

pytestmark = pytest.mark.unit

CLUSTER = {"kafka.bootstrap.servers": "h:1", "topic": "t"}


def test_a_topic_and_a_cluster_are_enough() -> None:
    options = LogOptions.of(CLUSTER)
    assert (options.topic, options.archive, options.connection.bootstrap) == ("t", None, "h:1")
    assert (options.columns, options.starting, options.ending) == (list(COLUMNS), None, None)
    assert (options.is_crc_checked, options.fails_on_data_loss) == (True, True)


def test_spark_hands_names_over_in_any_case() -> None:
    given = CLUSTER | {
        "STARTINGOFFSETS": '{"0": 23}',
        "endingOffsets": "latest",
        "columns": "offset, value",
        "CheckCRCs": "False",
        "kafka.sasl.username": "u",
    }
    options = LogOptions.of(given)
    assert (options.starting, options.ending, options.columns) == ({0: 23}, None, ["offset", "value"])
    assert options.is_crc_checked is False
    assert options.connection.properties == {"bootstrap.servers": "h:1", "sasl.username": "u"}


@pytest.mark.parametrize("name", ["archive", "path"])
def test_an_archive_needs_nothing_else(name: str) -> None:
    assert LogOptions.of({name: "/a"}).archive == "/a"


def test_a_given_schema_chooses_the_columns() -> None:
    schema = StructType([StructField("value", StringType()), StructField("offset", LongType())])
    with pytest.raises(ConfigurationError, match=r"schema: has a column value string. Use columns as they are: partit"):
        LogOptions.of(CLUSTER, schema)
    assert LogOptions.of(CLUSTER, StructType([schema["offset"]])).columns == ["offset"]


def test_every_problem_is_named_at_once_and_no_value() -> None:
    with pytest.raises(ConfigurationError) as caught:
        LogOptions.of(
            {
                "kafka.sasl.password": "hunter2",
                "startingOffsets": "yesterday",
                "endingOffsets": '{"0": -1}',
                "recordsPerPartition": "-5",
                "failOnDataLoss": "perhaps",
                "columns": "offset,prize",
            }
        )
    assert [problem.path for problem in caught.value.problems] == [
        "topic",
        "bootstrap.servers",
        "columns",
        "startingOffsets",
        "endingOffsets",
        "recordsPerPartition",
        "failOnDataLoss",
    ]
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(LogOptions.of(CLUSTER | {"kafka.sasl.password": "hunter2"}))


def test_a_connection_is_looked_up_where_it_is_used_and_no_secret_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cret"
    described = {"conn_type": "kafka", "extra": {"bootstrap.servers": "h:1", "sasl.password": secret}}
    monkeypatch.setenv("AIRFLOW_CONN_LOG", json.dumps(described))
    monkeypatch.setenv("AIRFLOW_CONN_DB", "postgres://h/d")

    options = LogOptions.of({"topic": "flights", "connection": "log"})

    assert options.connection == KafkaConnection(
        id="log", properties={"bootstrap.servers": "h:1", "sasl.password": secret}
    )
    assert secret.encode() not in pickle.dumps(options)
    assert secret.encode() not in pickle.dumps(pickle.loads(pickle.dumps(options)))
    with pytest.raises(ConfigurationError, match=r"^kafka_log: connection: leads to no Kafka[.] Name one of conn_type"):
        _ = LogOptions.of({"topic": "flights", "connection": "db"}).connection


def test_a_connection_beside_properties_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        LogOptions.of({"topic": "flights", "connection": "log", "kafka.bootstrap.servers": "h:1"})

    assert str(caught.value) == (
        "kafka_log: connection: stands beside bootstrap.servers. Leave these out: they are those of the connection"
    )
