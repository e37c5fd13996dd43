"""Test repairs of records that have several elements of a key: the one is written by which its row was judged."""

import json
from typing import Any

import pytest

from makewhole.compensation.sources.sources import Sources
from makewhole.compute.keys import key_text
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint
from tests.unit.compensation.freezing.test_survivors import REMEDIES, Records

pytestmark = pytest.mark.unit

Element = dict[str, Any]


def element_of(semantics: Semantics, version: str | None, elements: list[Element]) -> Any:
    """Return the element of the key A, 1 that is found in a record with these; None: none is."""
    orders = TopicPoint(
        name="orders",
        connection="kafka",
        topic="orders",
        key=("$.id", "$.lines.no"),
        explode="$.lines",
        version=version,
        columns=(("sku", "$.lines.sku"),),
    )
    points: dict[str, Point] = {
        "orders": orders,
        "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="store", key=("id", "no")),
    }
    hop = Hop(source="orders", target="store", remedies=REMEDIES, semantics=semantics)
    pipeline = Pipeline(name="p", points=points, hops=(hop,), compare={"sku": "string"})
    value = json.dumps({"id": "A", "lines": elements}).encode()
    with Sources(pipeline, Records(at_7=value), {}) as sources:
        sources.load({"orders": [(0, 7)]})
        record = sources.find("orders", (0, 7), key_text(["A", "1"]))
    return None if record is None else json.loads(record.value or b"")["lines"]


OLD, NEW = {"no": 1, "sku": "a", "rev": 2}, {"no": 1, "sku": "b", "rev": 10}
OTHER: Element = {"no": 2, "sku": "c", "rev": 99}
NOTED = {**NEW, "note": "x"}
UPSERT, EVENT, REV = Semantics.UPSERT, Semantics.EVENT, "$.lines.rev"


@pytest.mark.parametrize(
    ("semantics", "version", "elements", "expected"),
    [
        (EVENT, None, [OTHER, OLD], OLD),
        (EVENT, None, [OTHER], None),
        (EVENT, None, [], None),
        (EVENT, None, [OLD, OLD], OLD),
        (EVENT, None, [OLD, NEW], None),
        (UPSERT, None, [OLD, NEW], None),
        (UPSERT, REV, [OLD, NEW, OTHER], NEW),
        (UPSERT, REV, [OTHER, NEW, OLD, NEW], NEW),
        (UPSERT, REV, [NEW, OLD, {**NEW, "sku": "z"}], None),
        (UPSERT, REV, [NEW, OLD, NOTED], None),  # it has something that is written, and is not compared
        (UPSERT, REV, [NEW, {"no": 1, "sku": "a"}], None),
        (UPSERT, REV, [NEW, {**OLD, "rev": "2024-01-01"}], None),
    ],
)
def test_the_element_that_counts_is_found(
    semantics: Semantics, version: str | None, elements: list[Element], expected: Element | None
) -> None:
    assert element_of(semantics, version, elements) == expected
