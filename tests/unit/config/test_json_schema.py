"""Test that the JSON Schema for editors and the parser agree: on every example, and on mistakes."""

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from makewhole.config.json_schema import pipeline_schema, schema_text
from makewhole.config.pipeline_file import read_file
from tests.unit.config.test_documentation import BLOCKS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("dags/pipelines/*.yaml")])
TEXTS = [*BLOCKS, *(file.read_text(encoding="utf-8") for file in FILES)]
SCHEMA = Draft202012Validator(pipeline_schema())
Write = Callable[..., Path]


class EditorLoader(yaml.SafeLoader):
    """Reads scalars as editors do: a time is a text."""


EditorLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def as_editors_read(text: str) -> Any:
    return yaml.load(text, Loader=EditorLoader)


def complaints(text: str) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(as_editors_read(text))]


def test_the_published_schema_is_the_one_of_the_code() -> None:
    """`python -m makewhole.config.json_schema > docs/pipeline.schema.json` writes it again."""
    Draft202012Validator.check_schema(pipeline_schema())
    assert (ROOT / "docs" / "pipeline.schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_example_fits_the_schema(text: str) -> None:
    assert complaints(text) == []


GOOD = """\
version: 2
pipeline: flights
schedule: "0 2 * * *"
compare: {delay: "decimal(6,1)"}
points:
  outbox: {kind: ledger, connection: db, table: ops.departures, key: id, time: at}
  flights: {kind: topic, connection: kafka, topic: flights, key: "$.id", value: json}
  warehouse: {kind: store, connection: db, table: dw.departures, key: id, time: at}
hops:
  - {from: outbox, to: flights}
  - {from: flights, to: warehouse, consumer_group: loader}
gate: {tolerance: {missing: 0}, allow_empty: false}
settle: 5m
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 2", "version: 1"),
        ("version: 2", "version: '2'"),
        ("pipeline: flights", "pipeline: Flights"),
        ("pipeline: flights", "pipelin: flights"),
        ("0 2 * * *", "0 2 * *"),
        ("decimal(6,1)", "dezimal(6,1)"),
        ("compare: {delay", 'compare: {"de lay"'),
        ("kind: ledger, ", ""),
        ("kind: ledger", "kind: leger"),
        (", time: at}\n  flights", "}\n  flights"),
        ("connection: db, table: ops.departures", "conection: db, table: ops.departures"),
        ("table: dw.departures", "table: 7"),
        ("topic: flights, ", ""),
        ("value: json", "value: jason"),
        ('key: "$.id"', "key: []"),
        ("to: flights}", "too: flights}"),
        ("consumer_group: loader", "consumer_group: two words"),
        ("missing: 0", "missing: -1"),
        ("missing: 0", "mising: 0"),
        ("allow_empty: false", "allow_empty: perhaps"),
        ("settle: 5m", "settle: 5 minutes"),
        ("settle: 5m", "settle:"),
        ("settle: 5m", "retries: 5"),
        ("consumer_group: loader", "compensation: {missing: resend}"),
    ],
)
def test_a_mistake_in_one_line_is_seen_by_both(write: Write, old: str, new: str) -> None:
    assert old in GOOD
    assert complaints(GOOD) == []
    bad = GOOD.replace(old, new, 1)
    assert complaints(bad) != []
    assert read_file(write(bad)).problems != ()


def spoilt(document: Any, chance: random.Random) -> Iterator[Any]:
    """Yield copies of a document with one thing changed at random: left out, of another type, or with a key more."""
    for _ in range(60):
        changed = copy.deepcopy(document)
        node: Any = changed
        while True:
            keys = [*node] if isinstance(node, dict) else [*range(len(node))]
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(node[key], dict | list) and node[key] and chance.random() < 0.75:
                node = node[key]
                continue
            act = chance.choice(("leave out", "replace", "add"))
            if act == "leave out":
                del node[key]
            elif act == "replace" or isinstance(node, list):
                node[key] = chance.choice((None, 7, -1, 0.5, True, "x", "two words", "$.a", [], ["a"], {}, {"a": "b"}))
            else:
                node[chance.choice(("key", "time", "value", "version", "where", "to", "nothing"))] = "x"
            break
        yield changed


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_schema_refuses_nothing_that_the_parser_takes(write: Write, text: str) -> None:
    refused = 0
    for changed in spoilt(as_editors_read(text), random.Random(text)):
        written = yaml.safe_dump(changed, sort_keys=False)
        if complaints(written):
            refused += 1
            assert read_file(write(written)).problems, written
    assert refused > 15
