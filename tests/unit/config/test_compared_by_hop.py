"""Test `compare` of a hop: what it means at each point, and what cannot go together."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.lake.stored_verdicts import COMPARED, SEMANTICS, judged_as
from makewhole.model.errors import ConfigurationError
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import (
    as_compared_on,
    columns_asked_at,
    columns_read_at,
    compared_by_hop,
    compared_on,
    compared_sets_at,
    is_all_read,
)
from makewhole.window.configuration import configuration_document, judging_sha256
from makewhole.window.context import table_shape

pytestmark = pytest.mark.unit

FILE = """
version: 2
pipeline: shop
compare: {{amount: "decimal(8,2)", region: string}}
points:
  outbox: {{kind: ledger, connection: db, table: outbox, key: id, time: at}}
  orders: {{kind: topic, connection: log, topic: orders, key: "$.id", columns: {{region: "$.place.region"}}}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: id, time: at}}
  regions: {{kind: store, connection: db, table: {table}, key: id, time: at}}
hops:
  - {{from: outbox, to: orders}}
  - {{from: orders, to: warehouse, compare: {of_warehouse}}}
  - {{from: orders, to: regions, compare: {of_regions}}}
"""
_OF_FILE = {"amount": "decimal(8,2)", "region": "string"}


def read(folder: Path, **texts: str) -> Pipeline:
    path = folder / "shop.yaml"
    path.write_text(FILE.format(**{"of_warehouse": "{number: int}", "of_regions": "{}", "table": "regions"} | texts))
    return load_pipeline(path)


def test_a_point_holds_what_its_hops_compare_and_a_hop_asks_for_its_own(tmp_path: Path) -> None:
    pipeline = read(tmp_path)
    of_outbox, of_warehouse, of_regions = pipeline.hops
    held = {point: dict(columns_read_at(pipeline, point)) for point in pipeline.points}
    assert held == {
        "outbox": _OF_FILE,
        "orders": {**_OF_FILE, "number": "int"},
        "warehouse": {"number": "int"},
        "regions": {},
    }
    for hop, compared in ((of_outbox, _OF_FILE), (of_warehouse, {"number": "int"}), (of_regions, {})):
        seen = as_compared_on(pipeline, hop)
        assert (compared_on(pipeline, hop), seen.compare, columns_asked_at(seen, "orders")) == (compared,) * 3
        assert {point: dict(columns_read_at(seen, point)) for point in pipeline.points} == held
        assert as_compared_on(seen, of_outbox).compare == _OF_FILE
        assert not is_all_read(seen, "orders")
        assert is_all_read(seen, hop.target) is (hop is not of_outbox)
    assert table_shape(pipeline, pipeline.table("warehouse")).compare == {"number": "int"}


def test_a_result_says_what_its_hop_compared_at_the_ends_that_hold_more(tmp_path: Path) -> None:
    pipeline = read(tmp_path)
    compared = {hop.target: judged_as(pipeline, hop).get(COMPARED) for hop in pipeline.hops}
    assert compared == {
        "orders": {"target": ["amount", "region"]},
        "warehouse": {"source": ["number"]},
        "regions": {"source": []},
    }
    bare = read(tmp_path, of_warehouse='{amount: "decimal(8,2)", region: string}', of_regions="{region: string}")
    assert judged_as(bare, bare.hops[0]) == {SEMANTICS: "event"}


def test_the_index_of_a_point_knows_each_set_that_is_not_all_that_the_point_holds(tmp_path: Path) -> None:
    pipeline = read(tmp_path)
    at_orders = [places for _, places in compared_sets_at(pipeline, "orders")]
    assert at_orders == [
        {"amount": "decimal(8,2)", "region": "string at orders: $.place.region"},
        {"number": "int"},
        {},
    ]
    assert compared_sets_at(pipeline, "warehouse") == compared_sets_at(pipeline, "outbox") == []


def test_a_file_without_such_lines_is_what_it_was(tmp_path: Path) -> None:
    same = '{amount: "decimal(8,2)", region: string}'
    written, plain = read(tmp_path, of_warehouse=same, of_regions=same), read(tmp_path)
    text = (tmp_path / "shop.yaml").read_text()
    (tmp_path / "shop.yaml").write_text(text.replace(", compare: {number: int}", "").replace(", compare: {}", ""))
    bare = load_pipeline(tmp_path / "shop.yaml")
    assert as_compared_on(bare, bare.hops[0]) is bare
    assert compared_sets_at(written, "orders") == [] == compared_sets_at(bare, "orders")
    hops = [configuration_document(pipeline)["hops"] for pipeline in (bare, written, plain)]
    assert ["compare" in hop for of_file in hops for hop in of_file] == [False] * 4 + [True] * 2 + [False, True, True]
    assert len({judging_sha256(pipeline) for pipeline in (bare, written, plain)}) == 3
    assert compared_by_hop(bare) == {}
    assert compared_by_hop(plain) == {"orders→warehouse": {"number": "int"}, "orders→regions": {}}


def test_a_column_with_two_types_is_refused(tmp_path: Path) -> None:
    messages = problems(tmp_path, of_warehouse="{amount: string}")
    assert messages == [
        "hops[1] (line 12): orders→warehouse compares amount as string, and it is a decimal(8,2) under 'compare' of "
        "the file; a point is read once for all its hops. Write one type for it, or give it another name here, and its "
        "place under 'columns' at the points of orders→warehouse"
    ]


def test_hops_into_one_place_that_compare_different_columns_are_refused(tmp_path: Path) -> None:
    messages = problems(tmp_path, table="warehouse")
    assert messages == [
        "hops[2] (line 13): orders→warehouse and orders→regions lead into one place and compare different columns, and "
        "each row there is held to all its sources. Compare the same columns, in the same order, on both"
    ]


def test_types_and_names_are_those_of_compare(tmp_path: Path) -> None:
    assert problems(tmp_path, of_warehouse="{number: integer}")[0].startswith("hops[1].compare.number (line 12): ")
    assert problems(tmp_path, of_warehouse="[number]")[0].startswith("hops[1].compare (line 12): ")


def problems(folder: Path, **texts: str) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        read(folder, **texts)
    return [f"{problem.path}: {problem.found}. {problem.remedy}" for problem in raised.value.problems]
