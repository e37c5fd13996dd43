"""Check how a pipeline file says that the elements of an array are the events, and what it cannot say beside that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.window.configuration import configuration_document, reading_sha256
from makewhole.window.context import value_shape

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: shop
compare: {sku: string, at: timestamp}
points:
  log: {kind: topic, connection: k, topic: log, EXPLODE, key: KEY,
        columns: {sku: SKU, at: {field: "$.o.at", as: timestamp(ms)}}}
  store: {kind: store, connection: db, table: dw.lines, key: [order_id, line], time: at}
hops: [{from: log, to: storeHOP}]
"""
KEY, SKU = '["$.id", "$.o.lines[*].no"]', '"$.o.lines[*].sku"'


def _text(key: str = KEY, sku: str = SKU, hop: str = "", explode: str = 'explode: "$.o.lines[*]"') -> str:
    return (
        FILE.replace("KEY", key)
        .replace("SKU", sku)
        .replace("HOP", hop)
        .replace("EXPLODE, ", explode and f"{explode}, ")
    )


def test_places_in_an_element_stand_where_its_array_does(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(write(_text()))
    log = pipeline.topic("log")

    assert (log.explode, log.key) == ("$.o.lines", ("$.id", "$.o.lines.no"))
    assert log.columns == (("sku", "$.o.lines.sku"), ("at", "$.o.at"))
    elements = value_shape(pipeline, log).elements
    assert elements is not None
    assert (elements.path, repr(elements.format)) == (("o", "lines"), "json")
    assert repr(value_shape(pipeline, log).format) == "elements with units"


def test_whole_records_are_another_reading(write: Callable[..., Path]) -> None:
    """A field of an object is written as a field of an element is: what divides them is part of the file."""
    divided = load_pipeline(write(_text()))
    plain = load_pipeline(write(_text('["$.id", "$.o.lines.no"]', '"$.o.lines.sku"', explode=""), "plain.yaml"))
    assert reading_sha256(divided) != reading_sha256(plain)
    assert "explode" not in str(configuration_document(plain))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"explode": ""},
            "points.log.key (line 5): $.o.lines[*].no is in an element of an array, and the point's events are whole "
            "records. Write 'explode: \"$.o.lines[*]\"' at the point, or name a field that a record has once",
        ),
        (
            {"explode": 'explode: "$.o.lines"'},
            "points.log.explode (line 5): '$.o.lines' is no array in a record. Write '$.field[*]', or "
            "'$.outer.field[*]'",
        ),
        (
            {"key": '["$.id", "$.o.no"]'},
            "points.log.key (line 5): has no part in $.o.lines[*], so that all elements of a record would be one event"
            ". Name what identifies an element in its record, too: '$.o.lines[*].FIELD'",
        ),
        (
            {"key": "position"},
            "points.log.key (line 5): is the place of a record, and $.o.lines[*] divides records. Name fields: of the "
            "record, and of the element",
        ),
        (
            {"sku": '"$.o.lines.sku"'},
            "points.log.columns.sku (line 6): $.o.lines.sku is the array itself. Write '$.o.lines[*].sku' for what an "
            "element has",
        ),
        (
            {"sku": '"$.o.taxes[*].sku"'},
            "points.log.columns.sku (line 6): $.o.taxes[*].sku is in another array than $.o.lines[*]. Name a field of "
            "the record, or '$.o.lines[*].FIELD'",
        ),
        (
            {"hop": ", semantics: upsert"},
            "hops[0] (line 8): 'semantics: upsert' takes the latest version of each element, and an element that a "
            "newer record has no more would stand. Take 'semantics' out, or compare records whose key is that of the "
            "whole",
        ),
        (
            {"hop": ", compensation: {missing: redeliver}"},
            "hops[0] (line 8): redeliver would write a whole record, with all its elements, for one of them. Write "
            "'upsert' for what is missing or mismatched, and 'quarantine' for what is there too often",
        ),
    ],
)
def test_what_cannot_be_is_refused(write: Callable[..., Path], changed: dict[str, str], problem: str) -> None:
    assert problem in _problems(write(_text(**changed)))


def test_a_hop_into_elements_is_refused(write: Callable[..., Path]) -> None:
    text = _text().replace(
        "{kind: store, connection: db, table: dw.lines, key", "{kind: ledger, connection: db, table: l, key"
    )
    found = _problems(write(text.replace("from: log, to: store", "from: store, to: log")))
    assert found == [
        "hops[0] (line 8): the events of log are elements of its records, and store has whole records. Compare store "
        "with the topic in a pipeline file of its own, in which the point has no 'explode'"
    ]


def _problems(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]
