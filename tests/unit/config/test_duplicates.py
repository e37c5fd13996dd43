"""Test what a topic point says of keys with several records."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.verdict import Duplicates
from makewhole.window.configuration import configuration_document, judging_sha256, reading_sha256

pytestmark = pytest.mark.unit

PIPELINE = """
version: 2
pipeline: shop
points:
  outbox: {{kind: ledger, connection: db, table: outbox, key: id, time: at}}
  orders: {{kind: topic, connection: log, topic: orders, key: "$.id"{orders}}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: id, time: at}}
hops:
  {into}
  - {{from: orders, to: warehouse}}
"""


def write(folder: Path, orders: str = "", into: str = "- {from: outbox, to: warehouse}") -> Path:
    path = folder / "shop.yaml"
    path.write_text(PIPELINE.format(orders=orders, into=into), encoding="utf-8")
    return path


@pytest.mark.parametrize("word", ["report", "refused"])
def test_a_topic_that_nothing_feeds_asks_for_its_duplicates(tmp_path: Path, word: str) -> None:
    plain = load_pipeline(write(tmp_path))
    asked = load_pipeline(write(tmp_path, f", duplicates: {word}"))

    assert (plain.topic("orders").duplicates, asked.topic("orders").duplicates) == (None, Duplicates(word))
    assert "duplicates" not in str(configuration_document(plain))
    assert reading_sha256(plain) == reading_sha256(asked), "records are read alike"
    assert judging_sha256(plain) != judging_sha256(asked)


@pytest.mark.parametrize(
    ("orders", "into", "expected"),
    [
        (
            ", duplicates: yes please",
            "- {from: outbox, to: warehouse}",
            "points.orders.duplicates: 'yes please' is not what becomes of duplicates. Allowed: refused, report",
        ),
        (
            ", duplicates: report",
            "- {from: outbox, to: orders}",
            "points.orders.duplicates: asks for the keys of orders with several records, which hop outbox→orders finds "
            "as `duplicate`. Take the line out; it is for a topic into which no hop leads",
        ),
    ],
)
def test_other_words_and_a_topic_that_is_fed_are_refused(tmp_path: Path, orders: str, into: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(tmp_path, orders, into))
    assert [
        f"{problem.path.split(' (')[0]}: {problem.found}. {problem.remedy}" for problem in caught.value.problems
    ] == [expected]
