"""Check which changes of the fields of a key are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from makewhole.compute.same_key import KeyFields, as_document, from_document, key_fields, require_same_key
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
IDS = {"ledger": {"a": "7.1", "b": "7.2", "c": "7.1"}, "store": {"a": "8.1", "b": "8.2", "c": "8.1"}}


def pipeline(ledger: Sequence[str], topic: Sequence[str], store: Sequence[str]) -> Pipeline:
    """Return ledger → topic → store with these keys; `c` is the new name of column `a`."""
    ends = (("ledger", PointKind.LEDGER, ledger), ("store", PointKind.STORE, store))
    tables = [TablePoint(name=name, kind=kind, connection="db", table=name, key=tuple(key)) for name, kind, key in ends]
    middle = TopicPoint(name="topic", connection="log", topic="t", key=tuple(f"$.{name}" for name in topic))
    return Pipeline(
        name="p",
        points={**{table.name: table for table in tables}, "topic": middle},
        hops=tuple(Hop(source=a, target=b, remedies=REPORT) for a, b in (("ledger", "topic"), ("topic", "store"))),
    )


def fields(*keys: Sequence[str], ids: Mapping[str, Mapping[str, str]] = IDS) -> KeyFields:
    return key_fields(pipeline(*keys), ids)


@pytest.mark.parametrize(
    "now",
    [
        ("a", "a", "a"),
        ("a", "b", "b"),
        ("b", "a", "b"),
        ("b", "b", "a"),
        ("c", "b", "b"),
        ("b", "c", "c"),
    ],
    ids=".".join,
)
def test_a_key_that_is_the_same_on_one_point_is_the_same_key(now: tuple[str, str, str]) -> None:
    require_same_key(pipeline(*now), fields("a", "a", "a"), fields(*now))


def test_a_part_that_is_another_field_everywhere_is_refused() -> None:
    changed = pipeline(["a", "b"], ["a", "b"], ["a", "b"])
    before = fields(["b", "a"], ["b", "a"], ["b", "a"])

    with pytest.raises(RefusedError) as caught:
        require_same_key(changed, before, key_fields(changed, IDS))

    assert str(caught.value) == (
        'p: the windows before knew ledger by [b, a], topic by ["$.b", "$.a"], store by [b, a], and this one would '
        'know ledger by [a, b], topic by ["$.a", "$.b"], store by [a, b]; what is kept from before (the key index, '
        "keys handed over) would not be found again. To go on as before, write `key: [b, a]` at points.ledger, `key: "
        '["$.b", "$.a"]` at points.topic, `key: [b, a]` at points.store. To go by the other key, give the pipeline '
        "another name: it begins a history of its own, from `start:` on"
    )


def test_nothing_is_said_of_points_that_no_window_knew() -> None:
    now = pipeline("b", "b", "b")
    require_same_key(now, {}, key_fields(now, IDS))
    require_same_key(now, from_document(None), key_fields(now, IDS))
    topic_alone = replace(now, points={"topic": now.points["topic"]}, hops=())
    require_same_key(topic_alone, fields("a", "a", "a"), key_fields(topic_alone, {}))


def test_fields_come_back_from_what_is_stored() -> None:
    known = fields("a", "b", "a")
    assert from_document(as_document(known)) == known
    assert as_document(known)["topic"] == [{"name": "$.b", "column": None}]
