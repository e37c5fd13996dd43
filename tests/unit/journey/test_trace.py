"""Test how a person writes a key, and in which windows it was judged."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.key_layout import with_layout
from makewhole.compute.keys import key_hash
from makewhole.journal.key_history import Judgement
from makewhole.journal.results.hop_results import HopResult
from makewhole.journey.trace import _WindowCopies, _without_finding, business_key
from makewhole.lake.stored_verdicts import SEMANTICS
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window

pytestmark = pytest.mark.unit

AT = datetime(2013, 1, 3, tzinfo=UTC)


def pipeline(*key: str) -> Pipeline:
    outbox = TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="ops.outbox", key=key)
    beside = TopicPoint(name="retry", connection="log", topic="retry", key=("$.a", "$.b", "$.c", "$.d"))
    report = Remedy.REPORT
    hop = Hop(source="outbox", target="outbox", remedies=Remedies(missing=report, duplicate=report, mismatched=report))
    return Pipeline(name="flights", points={"retry": beside, "outbox": outbox}, hops=(hop,))


def test_a_key_of_any_chain_of_points_is_a_key_of_the_pipeline() -> None:
    """Chains that nothing joins have keys of their own."""
    first = pipeline("id")
    names = ("orders", "invoices")
    more = [
        TablePoint(name=name, kind=PointKind.STORE, connection="db", table=name, key=("day", "no")) for name in names
    ]
    hop = Hop(source="orders", target="invoices", remedies=first.hops[0].remedies)
    both = replace(first, points={**first.points, **{point.name: point for point in more}}, hops=(*first.hops, hop))
    layout = {"outbox": (KeyType.UUID,), **dict.fromkeys(names, (KeyType.DATE, KeyType.BIGINT))}
    read = with_layout(both, layout)

    assert business_key(read, '["2013-01-01","7.0"]') == '["2013-01-01","7"]'
    assert business_key(read, "0000000A00AB4CDE8F0123456789ABCD") == "0000000a-00ab-4cde-8f01-23456789abcd"
    with pytest.raises(ConfigurationError, match="is no key of pipeline flights: key is not a uuid"):
        business_key(read, "7")


@pytest.mark.parametrize(
    ("parts", "written", "key"),
    [
        (("id",), "K1", "K1"),
        (("id",), '["a","b"]', '["a","b"]'),
        (("id",), " K1 ", " K1 "),
        (("day", "no"), '["a","b"]', '["a","b"]'),
        (("day", "no"), '[ "a" , "\\u00e9" ]', '["a","é"]'),
    ],
)
def test_a_key_has_one_spelling(parts: tuple[str, ...], written: str, key: str) -> None:
    assert business_key(pipeline(*parts), written) == key


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        (("id",), ""),
        (("id",), "K\udcff"),
        (("day", "no"), ""),
        (("day", "no"), "a,b"),
        (("day", "no"), '["a"]'),
        (("day", "no"), '["a",2]'),
        (("day", "no"), '["a",""]'),
        (("day", "no"), '{"a":1,"b":2}'),
        (("day", "no"), "12"),
        (("day", "no"), '"ab"'),
    ],
)
def test_what_cannot_be_a_key_is_refused_with_an_example(parts: tuple[str, ...], written: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        business_key(pipeline(*parts), written)
    example = "the key's text" if len(parts) == 1 else '["part 1", "part 2"]'
    assert str(caught.value) == (
        f"command line: KEY: is no key of pipeline flights. Write {example}, as `makewhole findings` shows keys"
    )


def test_a_key_is_read_by_the_types_of_its_parts() -> None:
    typed = with_layout(pipeline("id", "region"), {"outbox": (KeyType.DECIMAL, KeyType.STRING)})
    assert business_key(typed, '["5.00", "007"]') == '["5","007"]'
    with pytest.raises(ConfigurationError) as caught:
        business_key(typed, '["1_2", "007"]')
    assert str(caught.value) == (
        "command line: KEY: is no key of pipeline flights: key is not a number. "
        'Write ["part 1", "part 2"], as `makewhole findings` shows keys'
    )


def test_the_hash_is_the_one_that_snapshots_carry() -> None:
    assert key_hash("K1") == key_hash("K1")
    assert key_hash("") == "99aa06d3014798d86001c324468d497f"  # XXH3-128 of nothing, by its reference


HOP = Hop(
    source="flights",
    target="warehouse",
    remedies=Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.REPORT),
)
PENDING = Judgement(window=1, revision=1, hop=HOP.name, verdict="pending", cause="in_flight")


class Files:
    """A storage whose one verdict file knows the key."""

    def __init__(self, verdict: str) -> None:
        self.verdict = verdict

    def read_parquet(self, paths: list[str], columns: list[str]) -> pl.DataFrame:
        assert (list(paths), columns) == (["verdicts.parquet"], ["key_hash", "verdict", "is_held"])
        return pl.DataFrame({"key_hash": ["0" * 32], "verdict": [self.verdict]})


@pytest.mark.parametrize("verdict", ["matched", "before_baseline"])
@pytest.mark.parametrize(
    ("number", "handed_over", "is_reported"),
    [
        (2, [PENDING], True),  # handed over by name, judged here
        (2, [], False),  # not this window's key
        (3, [PENDING], False),
        (2, [PENDING, replace(PENDING, window=2, verdict="missing")], False),  # reported by its finding
    ],
)
def test_a_key_that_was_handed_over_and_is_no_finding_is_reported_in_the_next_window(
    monkeypatch: pytest.MonkeyPatch, number: int, handed_over: list[Judgement], is_reported: bool, verdict: str
) -> None:
    files = {
        "verdicts_by_bucket": {bucket_name(0, 1): ["verdicts.parquet"]},
        "summary": {"clean": 0},
        SEMANTICS: "event",
    }
    result = HopResult(hop=HOP.name, counts=HopCounts(), digest="", files=files)
    monkeypatch.setattr("makewhole.journal.results.hop_results.results", lambda *_: {HOP.name: result})
    monkeypatch.setattr("makewhole.journal.key_history.judged_at", lambda *_: {HOP.name: AT})
    window = Window(pipeline="flights", number=number, revision=1, start=None, end=AT, opened_at=AT, ranges={})
    seen = _WindowCopies(window=window, slices={}, copies={"flights": []}, problems={})
    flights = Pipeline(name="flights", points={}, hops=(HOP,))
    judgements = list(_without_finding(Any, Files(verdict), flights, seen, handed_over, "0" * 32))  # type: ignore[arg-type]
    matched = Judgement(window=number, revision=1, hop=HOP.name, verdict=verdict, judged_at=AT)
    assert judgements == ([matched] if is_reported else [])
