"""Test that a run says by the filter, and not by the hop's name, whether a copy passes."""

from dataclasses import replace

import polars as pl
import pytest

from makewhole.compute.indexed_keys.hop_filters import (
    UNKNOWN_FILTER,
    KnownFilters,
    changed_filters,
    filter_digest,
    filter_places,
    of_unknown_filter,
    still_readable,
    with_filter_of,
    with_noted_filters,
)
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TopicPoint

pytestmark = pytest.mark.unit

_REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
EU, US = "region = 'EU'", "region = 'US'"
HOP = Hop(source="orders", target="warehouse", remedies=_REPORT, where=EU)


def run(*excluded_by: list[str]) -> pl.DataFrame:
    rows = {"place": [f"0:{at}" for at in range(len(excluded_by))], "excluded_by": list(excluded_by)}
    return pl.DataFrame(rows, schema={"place": pl.String, "excluded_by": pl.List(pl.String)})


def noted(frame: pl.DataFrame, **filters: str) -> pl.DataFrame:
    return with_noted_filters(frame, {name: filter_digest(where) for name, where in filters.items()})


@pytest.mark.parametrize(
    "other", ["region='EU'", "  region   =   'EU' ", "region = 'EU'"], ids=["close", "wide", "same"]
)
def test_a_filter_that_is_written_otherwise_is_the_same(other: str) -> None:
    assert filter_digest(other) == filter_digest(EU)


def test_the_order_of_terms_does_not_matter_and_their_literals_do() -> None:
    assert filter_digest("a = 1 and b = 'x'") == filter_digest("b = 'x' AND a = 1")
    assert len({filter_digest(text) for text in ("a = 1", "a = '1'", "a = true", "a = 'true'", EU, US)}) == 6


def test_the_digest_of_an_equality_is_that_of_every_window_before() -> None:
    assert filter_digest("b = 'x' and a = 1.50") == "be2595aef38dddbf"


def test_a_filter_that_compares_a_column_by_another_type_is_another_one() -> None:
    digests = {
        filter_digest("a = '1.0' and b = 'x'", types=types)
        for types in ({}, {"a": "string"}, {"a": "decimal(38,9)"}, {"a": "decimal(38,9)", "c": "string"})
    }
    assert len(digests) == 3


def test_a_copy_that_a_filter_excluded_by_another_type_may_pass_by_the_one_of_now() -> None:
    text, number = {"region": "string"}, {"region": "decimal(38,9)"}
    frame = run([], [HOP.name])
    known = with_noted_filters(frame, {HOP.name: filter_digest(EU)}, [filter_digest(EU, types=text)])
    assert with_filter_of(known, HOP, types=text)["excluded_by"].to_list() == [[], [HOP.name]]
    assert with_filter_of(known, HOP, types=number)["excluded_by"].to_list() == [[], [UNKNOWN_FILTER]]


@pytest.mark.parametrize(
    ("first", "other"),
    [("a != 1", "a <> 1"), ("a in (1)", "a = 1"), ("a not in (1)", "a != 1"), ("a in (1, 2)", "a IN (2,1, 2)"),
     ("a is  NULL and b > 1", "b>1 and a is null")],
)  # fmt: skip
def test_two_spellings_of_a_comparison_are_one_filter(first: str, other: str) -> None:
    assert filter_digest(first) == filter_digest(other)


def test_comparisons_that_differ_are_several_filters() -> None:
    texts = ["a = 1", "a != 1", "a < 1", "a <= 1", "a > 1", "a >= 1", "a is null", "a is not null", "a in (1, 2)",
             "a not in (1, 2)", "a != '1'", "a = 1 and a = 2", "b != 1"]  # fmt: skip
    assert len({filter_digest(text) for text in texts}) == len(texts)


def test_a_renamed_hop_finds_what_passed_its_filter() -> None:
    frame = noted(run([], ["old"]), old=EU)
    assert with_filter_of(frame, HOP)["excluded_by"].to_list() == [[], [HOP.name]]
    assert passing_rows(with_filter_of(frame, HOP), HOP.name)["place"].to_list() == ["0:0"]


@pytest.mark.parametrize("filters", [{}, {"orders→warehouse": US}], ids=["none", "another"])
def test_of_a_filter_that_the_window_did_not_know_nothing_is_known(filters: dict[str, str]) -> None:
    frame = with_filter_of(noted(run([], ["orders→warehouse"]), **filters), HOP)
    assert frame["excluded_by"].to_list() == [[UNKNOWN_FILTER], [UNKNOWN_FILTER]]
    assert len(passing_rows(frame, HOP.name)) == 0
    assert len(of_unknown_filter(frame)) == 2


def test_a_hop_without_a_filter_takes_every_copy() -> None:
    frame = noted(run([], ["orders→warehouse"]), **{"orders→warehouse": US})
    assert with_filter_of(frame, replace(HOP, where=None)).equals(frame)


def test_filters_of_several_hops_are_distinguished() -> None:
    frame = noted(run(["a", "b"], ["b"], ["a"]), a=EU, b=US)
    assert with_filter_of(frame, HOP)["excluded_by"].to_list() == [[HOP.name], [], [HOP.name]]


def test_a_filter_whose_column_is_read_from_another_place_is_another_one() -> None:
    point = TopicPoint(name="orders", connection="k", topic="t", key=("$.id",), columns=(("region", "$.where"),))
    moved = Pipeline(name="shop", points={"orders": point}, hops=(HOP,))
    plain = replace(moved, points={"orders": replace(point, columns=())})
    before, now = KnownFilters.of(plain), KnownFilters.of(moved)
    assert before.document == {"filters": {HOP.name: EU}}
    assert now.document == {"filters": {HOP.name: EU}, "filter_columns": {HOP.name: {"region": "$.where"}}}
    assert KnownFilters.from_document(now.document) == now
    assert changed_filters(moved, now) == changed_filters(plain, before) == {}

    assert changed_filters(moved, before) == {HOP.name: EU}
    assert still_readable(moved, before, {HOP.name: EU}) == {}
    assert still_readable(
        moved,
        now,
        {
            HOP.name: EU,
        },
    ) == {HOP.name: EU}
    assert (before.shown(HOP.name), now.shown(HOP.name)) == (EU, f"{EU} (region at $.where)")
    places = filter_places(moved, HOP)
    assert with_filter_of(noted(run([]), **{HOP.name: EU}), HOP, places)["excluded_by"].to_list() == [[UNKNOWN_FILTER]]


def test_a_changed_filter_is_named_with_what_it_was() -> None:
    pipeline = Pipeline(name="shop", points={}, hops=(HOP,))
    assert changed_filters(pipeline, KnownFilters(texts={})) == {}
    assert changed_filters(pipeline, KnownFilters(texts={HOP.name: "region='EU'"})) == {}
    assert changed_filters(pipeline, KnownFilters(texts={HOP.name: ""})) == {HOP.name: ""}
    assert changed_filters(pipeline, KnownFilters(texts={HOP.name: US, "gone→hop": EU})) == {HOP.name: US}
