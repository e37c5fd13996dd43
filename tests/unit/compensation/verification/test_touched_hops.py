"""Test which hops a repair for one hop may break."""

from dataclasses import replace

import pytest

from makewhole.compensation.verification.touched_hops import touched_hops
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint

pytestmark = pytest.mark.unit

NOTHING = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def table(name: str, kind: PointKind, place: str = "") -> TablePoint:
    return TablePoint(name=name, kind=kind, connection="db", table=name, key=("id",), identity=place)


def topic(name: str) -> TopicPoint:
    return TopicPoint(name=name, connection="log", topic=name, key=("$.id",))


POINTS: tuple[Point, ...] = (
    table("outbox", PointKind.LEDGER),
    topic("orders"),
    topic("returns"),
    table("warehouse", PointKind.STORE, "7"),
    table("shelf", PointKind.LEDGER, "7"),
    topic("stock"),
    table("lake", PointKind.STORE),
)
WAYS = ("outbox→orders", "orders→warehouse", "returns→warehouse", "shelf→stock", "orders→lake")
SHOP = Pipeline(
    name="shop",
    points={point.name: point for point in POINTS},
    hops=tuple(Hop(source=way.split("→")[0], target=way.split("→")[1], remedies=NOTHING) for way in WAYS),
)


def touched(hop: str, remedy: Remedy, target: str, pipeline: Pipeline = SHOP) -> dict[str, str]:
    """Return the hops that may be broken, each with the point whose rows the repair changes."""
    return {hop_touched.hop.name: hop_touched.changed for hop_touched in touched_hops(pipeline, (hop, remedy, target))}


@pytest.mark.parametrize("remedy", [Remedy.UPSERT, Remedy.QUARANTINE])
def test_a_row_that_is_written_touches_the_other_hops_into_its_table_and_from_it(remedy: Remedy) -> None:
    assert touched("orders→warehouse", remedy, "warehouse") == {
        "returns→warehouse": "warehouse",
        "shelf→stock": "shelf",
    }
    assert touched("orders→lake", remedy, "lake") == {}


def test_a_record_that_is_sent_again_touches_the_tables_of_every_reader() -> None:
    assert touched("orders→lake", Remedy.REDELIVER, "orders") == {
        "orders→warehouse": "warehouse",
        "returns→warehouse": "warehouse",
        "shelf→stock": "shelf",
    }


def test_of_a_record_that_is_produced_the_stores_behind_it_are_judged_by_its_own_finding() -> None:
    assert touched("outbox→orders", Remedy.PRODUCE, "orders") == {
        "returns→warehouse": "warehouse",
        "shelf→stock": "shelf",
    }


def test_tables_of_other_places_are_not_touched() -> None:
    points = {**SHOP.points, "shelf": replace(SHOP.points["shelf"], identity="8")}
    apart = replace(SHOP, points=points)
    assert touched("orders→warehouse", Remedy.UPSERT, "warehouse", apart) == {"returns→warehouse": "warehouse"}


def test_what_the_file_does_not_have_any_more_touches_nothing() -> None:
    assert touched("orders→gone", Remedy.UPSERT, "warehouse") == touched("orders→lake", Remedy.UPSERT, "gone") == {}
