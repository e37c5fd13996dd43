"""Test that `partitioner` stands on topics, and nowhere else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.connections import from_airflow_fields
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.points import Partitioner, TopicPoint

pytestmark = pytest.mark.unit

ON_TOPIC = 'key: "$.flight_id"'


@pytest.mark.parametrize("named", list(Partitioner))
def test_a_topic_names_the_partitioner_of_its_producers(
    write: Callable[..., Path], minimal: str, named: Partitioner
) -> None:
    point = load_pipeline(write(minimal.replace(ON_TOPIC, f"{ON_TOPIC}, partitioner: {named}"))).points["flights"]
    assert isinstance(point, TopicPoint)
    assert point.partitioner is named


def test_the_default_is_javas(write: Callable[..., Path], minimal: str) -> None:
    point = load_pipeline(write(minimal)).points["flights"]
    assert isinstance(point, TopicPoint)
    assert point.partitioner is Partitioner.MURMUR2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            ON_TOPIC,
            f"{ON_TOPIC}, partitioner: murmur",
            "points.flights.partitioner (line 5): 'murmur' is not a partitioner. Allowed: crc32, murmur2, random. "
            "Did you mean 'murmur2'?",
        ),
        (
            ON_TOPIC,
            f"{ON_TOPIC}, partitioner: ",
            "points.flights.partitioner (line 5): has no value. Give it one, or take the line out to have the default",
        ),
        (
            "key: flight_id, time",
            "partitioner: crc32, key: flight_id, time",
            "points.outbox.partitioner (line 4): is not a key here. Allowed: columns, connection, headers, key, kind, "
            "leave_fields, leave_headers, payload, record_key, table, time, version",
        ),
        (
            "key: flight_id}",
            "key: flight_id, partitioner: crc32}",
            "points.warehouse.partitioner (line 6): is not a key here. Allowed: columns, connection, erased, key, "
            "kind, table, time, version",
        ),
    ],
)
def test_anything_else_is_refused_with_its_place(
    write: Callable[..., Path], minimal: str, old: str, new: str, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(minimal.replace(old, new)))
    (actual,) = caught.value.problems
    assert f"{actual.path}: {actual.found}. {actual.remedy}" == problem


def test_a_connection_that_names_one_is_refused_with_the_line_to_write() -> None:
    extra = {"bootstrap.servers": "h:1", "partitioner": "murmur2_random"}
    with pytest.raises(ConfigurationError) as caught:
        from_airflow_fields("k", "kafka", extra=extra)
    assert str(caught.value) == (
        "Airflow connection: k: has a partitioner in its extra, and each topic has its own. Take it out, and write "
        "'partitioner: murmur2', 'crc32' or 'random' on the topic points of the pipeline file (murmur2_random is "
        "murmur2, consistent_random is crc32)"
    )
