"""Test which topics' rows count in a dataset whose rows say their topic, where records are sent to a replay topic."""

from pathlib import Path

import pyarrow as pa
import pytest

from makewhole.config.pipeline_file import load_pipeline, read_file
from makewhole.datasets.row_frames import is_of_topics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import TablePoint
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: orders
reach: log
points:
  orders: {kind: topic, connection: k, topic: orders, key: KEY}
  retry: {kind: topic, connection: k, topic: orders-retry, key: "$.id"}
  lake: {kind: dataset, connection: lake, format: iceberg, table: dw.orders, key: id, position: _kafka_metadata}
hops:
  - {from: orders, to: lake, redeliver_to: retry, compensation: {missing: redeliver}}
"""
SECOND = """\
  - {from: web, to: lake, redeliver_to: orders, compensation: {missing: redeliver}}
"""
ROWS = pa.table({"_kafka_metadata": [{"topic": name} for name in ("orders", "orders-retry", "web-orders", None)]})


def written(folder: Path, text: str = FILE, key: str = '"$.id"') -> Path:
    """Write a pipeline file."""
    path = folder / "orders.yaml"
    path.write_text(text.replace("KEY", key))
    return path


def lake_of(pipeline: Pipeline) -> tuple[TablePoint, DatasetPlace]:
    """Return the dataset of a pipeline."""
    point = pipeline.points["lake"]
    assert isinstance(point, TablePoint)
    assert point.dataset is not None
    return point, point.dataset


def counted(point: TablePoint) -> list[bool]:
    """Return which rows are the point's."""
    own = is_of_topics(ROWS, point)
    assert own is not None
    return own.to_list()


def test_rows_of_a_replay_topic_count(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path))
    point, dataset = lake_of(pipeline)

    assert (dataset.of_topics, dataset.replay_topics) == (("orders",), ("orders-retry",))
    assert counted(point) == [True, True, False, False]
    assert "'replay_topics': ['orders-retry']" in str(configuration_document(pipeline))


def test_a_replay_topic_that_leads_into_the_dataset_is_one_of_its_topics(tmp_path: Path) -> None:
    web = '  web: {kind: topic, connection: k, topic: web-orders, key: "$.id"}\n'
    point, dataset = lake_of(load_pipeline(written(tmp_path, FILE.replace("hops:", f"{web}hops:") + SECOND)))

    assert (dataset.of_topics, dataset.replay_topics) == (("orders", "web-orders"), ("orders-retry",))
    assert counted(point) == [True, True, True, False]


def test_without_a_replay_topic_its_rows_are_those_of_others(tmp_path: Path) -> None:
    text = FILE.replace(", redeliver_to: retry, compensation: {missing: redeliver}", "")
    text = "".join(line for line in text.splitlines(keepends=True) if "retry" not in line)
    pipeline = load_pipeline(written(tmp_path, text))

    assert counted(lake_of(pipeline)[0]) == [True, False, False, False]
    assert "replay_topics" not in str(configuration_document(pipeline))


def test_rows_that_are_known_by_their_positions_have_no_replay_topic(tmp_path: Path) -> None:
    text = FILE.replace("key: id, position", "position")
    problems = [
        f"{problem.path}: {problem.found}" for problem in read_file(written(tmp_path, text, "position")).problems
    ]
    assert problems == [
        "hops[0].compensation.missing (line 9): 'redeliver' is not possible for missing keys from a topic to a store "
        "whose key is its coordinates: a record that is sent again has others",
        "hops[0].redeliver_to (line 9): retry has a key of 1 and orders one of 2 parts",
    ]


def test_one_topic_of_two_clusters_is_one_name(tmp_path: Path) -> None:
    other = '  other: {kind: topic, connection: k2, topic: orders, key: "$.id"}\n'
    text = FILE.replace("hops:", f"{other}hops:") + "  - {from: other, to: lake}\n"
    assert lake_of(load_pipeline(written(tmp_path, text)))[1].of_topics == ("orders",)


BESIDE = """\
version: 2
pipeline: orders
reach: log
points:
  orders: {kind: topic, connection: k, topic: orders, key: position}
  web: {kind: topic, connection: k, topic: web-orders, key: "$.id"}
  lake: {kind: dataset, connection: lake, format: iceberg, table: dw.orders, position: {partition: p, offset: o}}
  again: {kind: dataset, connection: lake, format: iceberg, table: dw.orders, key: id}
hops:
  - {from: orders, to: lake}
  - {from: web, to: again}
"""


def test_positions_without_a_topic_are_those_of_one_topic(tmp_path: Path) -> None:
    problems = [
        f"{problem.path}: {problem.found}. {problem.remedy}"
        for problem in read_file(written(tmp_path, BESIDE)).problems
    ]
    assert problems == [
        "points.lake (line 7): has positions without a topic, and records of web come to its place, too: theirs would "
        "be taken for those of orders. Add 'topic: COLUMN' to 'position'; or name a 'key' here and at the topic"
    ]
    load_pipeline(written(tmp_path, BESIDE.replace("{partition: p", "{topic: t, partition: p")))
    load_pipeline(written(tmp_path, BESIDE.replace("dw.orders, key", "dw.again, key")))
