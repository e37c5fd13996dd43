"""Test the options of the Spark data source: read, or refused all at once without a value in the message."""

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

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
