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
            "hops[0] (line 8): 'semantics: upsert' takes the latest version of each element, and nothing says what "
            "becomes of one that a newer record does not have any more. Write 'removed_elements: kept' if what reads "
            "log leaves it as it was; otherwise take 'semantics' out, or compare whole records",
        ),
        (
            {"hop": ", semantics: upsert, removed_elements: deleted"},
            "hops[0].removed_elements (line 8): no record names the elements that it does not have any more, and those "
            "of older records are known by their own keys alone: a row that should be gone could not be proved wrong. "
            "Compare whole records (a point without 'explode', a store with the array in a column), or write "
            "'removed_elements: kept' if such rows stay",
        ),
        (
            {"hop": ", semantics: upsert, removed_elements: gone"},
            "hops[0].removed_elements (line 8): 'gone' is not what becomes of removed elements. Allowed: deleted, kept",
        ),
        (
            {"hop": ", removed_elements: kept"},
            "hops[0].removed_elements (line 8): 'removed_elements' is about newer records with fewer elements, and the "
            "hop has none. Take the line out, or write 'semantics: upsert' on a hop of a topic with 'explode'",
        ),
        (
            {"hop": ", compensation: {missing: redeliver}"},
            "hops[0] (line 8): redeliver would write a whole record, with all its elements, for one of them: those of "
            "log have several. Write 'upsert' for what a store lacks or has otherwise, 'quarantine' for what it has "
            "too often, and 'report' where the hop ends in a topic",
        ),
    ],
)
def test_what_cannot_be_is_refused(write: Callable[..., Path], changed: dict[str, str], problem: str) -> None:
    assert problem in _problems(write(_text(**changed)))


TOPICS = """\
version: 2
pipeline: shop
compare: {sku: string}
points:
  book: {kind: ledger, connection: db, table: book, key: [order_id, line], time: at}
  log: {kind: topic, connection: k, topic: log, key: ["$.id", "$.no"]}
  bundles: {kind: topic, connection: k, topic: bundles, explode: "$.lines[*]", key: ["$.id", "$.lines[*].no"],
            columns: {sku: "$.lines[*].sku"}}
  split: {kind: topic, connection: k, topic: split, key: ["$.id", "$.no"]}
  store: {kind: store, connection: db, table: dw.lines, key: [order_id, line], time: at}
hops:
  - {from: book, to: bundles}
  - {from: log, to: bundles}
  - {from: bundles, to: split}
  - {from: split, to: store}
"""


def test_elements_are_compared_with_records_of_one_event_each(write: Callable[..., Path]) -> None:
    """A ledger of lines, and a consumer that joins them; one that divides what it reads; and one in both places."""
    pipeline = load_pipeline(write(TOPICS))
    assert [hop.name for hop in pipeline.hops] == ["book→bundles", "log→bundles", "bundles→split", "split→store"]
    both = TOPICS.replace(
        'topic: split, key: ["$.id", "$.no"]', 'topic: split, explode: "$.l[*]", key: ["$.id", "$.l[*].no"]'
    )
    assert load_pipeline(write(both)).topic("split").explode == "$.l"


@pytest.mark.parametrize(
    ("hop", "remedy", "divided"),
    [
        ("{from: book, to: bundles", "compensation: {missing: produce}", "bundles"),
        ("{from: log, to: bundles", "compensation: {missing: redeliver}", "bundles"),
        ("{from: bundles, to: split", "compensation: {missing: redeliver}", "bundles"),
    ],
)
def test_no_record_is_written_for_one_of_its_elements(
    write: Callable[..., Path], hop: str, remedy: str, divided: str
) -> None:
    [problem] = _problems(write(TOPICS.replace(hop, f"{hop}, {remedy}")))
    assert (
        f"would write a whole record, with all its elements, for one of them: those of {divided} have several"
        in problem
    )


def test_records_are_not_redelivered_into_a_topic_of_elements(write: Callable[..., Path]) -> None:
    hop = "{from: split, to: store"
    [problem] = _problems(
        write(TOPICS.replace(hop, f"{hop}, redeliver_to: bundles, compensation: {{missing: redeliver}}"))
    )
    assert "the events of bundles are elements of its records, and a record of it would be written for one" in problem


def test_upsert_says_what_becomes_of_removed_elements_at_both_ends(write: Callable[..., Path]) -> None:
    text = TOPICS.replace("{from", "{semantics: upsert, from")
    assert [problem.split(":")[0] for problem in _problems(write(text))] == [
        f"hops[{number}] (line {12 + number})" for number in (0, 1, 2)
    ]
    kept = text.replace("to: bundles", "to: bundles, removed_elements: kept").replace(
        "to: split", "to: split, removed_elements: kept"
    )
    assert all(hop.semantics == "upsert" for hop in load_pipeline(write(kept)).hops)


def _problems(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]
