"""Check that the record of a ledger's row has its columns where the topic is read for them."""

import json
from typing import Any

import pytest

from makewhole.compensation.freezing.placed_record import placed_record
from makewhole.config.places.record_places import cannot_be_built
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint
from makewhole.tables.rows import LedgerRecord

pytestmark = pytest.mark.unit

REMEDIES = Remedies(missing=Remedy.PRODUCE, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
HOP = Hop(source="outbox", target="log", remedies=REMEDIES)


def pipeline(outbox: dict[str, Any] | None = None, **log: Any) -> Pipeline:
    ledger: dict[str, Any] = {"key": ("id",), "time": "at", "version": "v"} | (outbox or {})
    topic: dict[str, Any] = {"key": ("$.order.id",), "version": "$.meta.v"} | log
    points: dict[str, Point] = {
        "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="t", **ledger),
        "log": TopicPoint(name="log", connection="k", topic="log", **topic),
    }
    return Pipeline(name="shop", points=points, hops=(HOP,), compare={"amount": "int", "note": "string"})


def record(**fields: Any) -> LedgerRecord:
    return LedgerRecord(key=b"1", value=json.dumps(fields).encode(), timestamp_ms=0)


def test_columns_key_and_version_stand_at_their_places_and_all_others_at_the_top() -> None:
    made = placed_record(
        pipeline(columns=(("amount", "$.order.total.net"),)),
        HOP,
        record(id=1, v=7, amount=5, note="n", at="t", more=[1]),
    )

    assert json.loads(made.value or b"") == {
        "order": {"id": 1, "total": {"net": 5}},
        "meta": {"v": 7},
        "note": "n",
        "at": "t",
        "more": [1],
    }


@pytest.mark.parametrize("outbox", [{}, {"payload": "body", "columns": (("amount", "x"),)}])
def test_without_columns_or_with_a_payload_the_record_is_as_it_is(outbox: dict[str, Any]) -> None:
    known = record(id=1, amount=5)

    assert placed_record(pipeline(outbox), HOP, known) is known


def test_numbers_keep_every_digit_and_absent_columns_are_left_out() -> None:
    value = b'{"id":1,"amount":1.500000000000000000001}'
    made = placed_record(
        pipeline(columns=(("amount", "$.order.total"),)), HOP, LedgerRecord(key=b"1", value=value, timestamp_ms=0)
    )

    assert made.value == b'{"order":{"id":1,"total":1.500000000000000000001}}'


def test_a_column_of_a_header_is_not_repeated_in_the_value() -> None:
    known = pipeline({"headers": (("n", "note"),)}, columns=(("note", "header:n"),))

    assert cannot_be_built(known, HOP, known.table("outbox"), known.topic("log")) is None
    assert json.loads(placed_record(known, HOP, record(id=1, amount=5, note="x")).value or b"") == {
        "order": {"id": 1},
        "amount": 5,
    }


def test_a_column_of_the_row_that_stands_in_the_way_is_refused() -> None:
    known = pipeline(columns=(("amount", "$.order.total"),))

    with pytest.raises(ActionRefusedError) as caught:
        placed_record(known, HOP, record(id=1, amount=5, order="mine"))

    assert str(caught.value) == (
        "unfit: the record of a row of t cannot have order at $.order, where another of its columns stands; name a "
        "column that holds the whole value under `payload` at points.outbox"
    )


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("$.order", "cannot have amount at $.order and id at $.order.id"),
        ("$.order.id.x", "cannot have id at $.order.id and amount at $.order.id.x"),
        ("$.meta.v", "cannot have v at $.meta.v and amount at $.meta.v"),
        ("$.note", "cannot have amount at $.note and note at $.note"),
        ("kafka.key", "would not have amount at kafka.key"),
        ("$.meta.amount", None),
    ],
)
def test_what_no_record_can_have_is_known_from_the_file(place: str, problem: str | None) -> None:
    known = pipeline(columns=(("amount", place),))

    why = cannot_be_built(known, HOP, known.table("outbox"), known.topic("log"))

    assert (why or "").endswith(problem or "") and (why is None) == (problem is None)
