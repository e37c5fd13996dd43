"""Test `publish` of a topic point: where its records are published, each key once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.points import Publish
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: flights
compare: {delay: int}
points:
  outbox: {kind: ledger, connection: db, table: ops.departures, key: flight_id, time: recorded_at}
  flights: {kind: topic, connection: log, topic: flights, key: "$.flight_id", publish: PUBLISH}
  once: {kind: topic, connection: log, topic: flights-once, key: "$.flight_id"}
  warehouse: {kind: store, connection: db, table: dw.departures, key: flight_id}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: warehouse}
"""


def text(publish: str) -> str:
    return FILE.replace("PUBLISH", publish)


def test_point_is_published_to_a_folder_and_into_a_topic_that_no_hop_joins(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(text("{path: 's3://lake@once/flights/', topic: once}")))

    assert pipeline.publish == (Publish(point="flights", path="s3://lake@once/flights", topic="once"),)


def test_what_is_published_decides_no_verdict(write: Callable[..., Path]) -> None:
    to_folder, elsewhere = (
        load_pipeline(write(text(f"{{path: {path}, topic: once}}"), f"{path[1:]}.yaml")) for path in ("/a", "/b")
    )

    assert judging_sha256(to_folder) == judging_sha256(elsewhere)
    assert reading_sha256(to_folder) == reading_sha256(elsewhere)
    assert configuration_document(to_folder)["publish"] == [{"point": "flights", "path": "/a", "topic": "once"}]


def test_file_without_it_has_the_document_that_it_had(write: Callable[..., Path], minimal: str) -> None:
    assert "publish" not in configuration_document(load_pipeline(write(minimal)))


def test_elements_of_records_are_not_published(write: Callable[..., Path]) -> None:
    divided = 'key: ["$.flight_id", "$.legs[*].number"], explode: "$.legs[*]", publish: {path: /once}'
    file = FILE.replace('key: "$.flight_id", publish: PUBLISH', divided)

    with pytest.raises(ConfigurationError) as refused:
        load_pipeline(write(file))

    assert "points.flights.publish (line 6): is of a topic whose events are elements of its records" in str(
        refused.value
    )


UNJOINED = "points.once (line 7): is joined by no hop. Join it with a hop, or take it out: nothing would look at it"


@pytest.mark.parametrize(
    ("file", "messages"),
    [
        (
            text("{path: lake, topic: once}"),
            [
                "points.flights.publish.path (line 6): 'lake' is no folder of a storage. Write '/folder', "
                "'s3://connection@bucket/folder' or another URI"
            ],
        ),
        (
            text("{path: /a, topic: warehouse}"),
            [
                UNJOINED,
                "points.flights.publish.topic (line 6): 'warehouse' is a store, and records go to topics. Allowed: "
                "flights, once",
            ],
        ),
        (
            text("{topic: flights}"),
            [
                UNJOINED,
                "points.flights.publish.topic (line 6): is a topic that the hops of this pipeline read or write. Name "
                "a topic point of its own, to which nothing else is written",
            ],
        ),
        (
            text("{topic: once}").replace("compare: {delay: int}\n", ""),
            [
                "points.flights.publish (line 5): needs 'compare': by it a record that was sent again is distinguished "
                "from one that says something else. Name the columns of 'compare'"
            ],
        ),
        (
            text("{topic: once, survivor: last}"),
            ["points.flights.publish.survivor (line 6): is not a key here. Allowed: path, topic"],
        ),
        (
            text("{topic: once}").replace("once: {kind: topic,", "once: {kind: topic, publish: {path: /b},"),
            [
                "points.once.publish (line 7): is of a topic that no hop joins, so that nothing in it is verified. Add "
                "a hop to or from it"
            ],
        ),
    ],
)
def test_mistakes_are_named_with_their_place(write: Callable[..., Path], file: str, messages: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_pipeline(write(file))

    lines = [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in raised.value.problems]
    assert sorted(lines) == sorted(messages)
