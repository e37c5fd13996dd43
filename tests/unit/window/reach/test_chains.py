"""Test how chains of hops are followed, and what the reach of a pipeline is."""

import pytest

from makewhole.model.hops import Hop, Reach, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint
from makewhole.window.reach.chains import PointChain, first_points, point_chains, reach_of

pytestmark = pytest.mark.unit

_REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
_POINTS: dict[str, Point] = {
    "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="outbox", key=("id",)),
    "orders": TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",)),
    "mirror": TopicPoint(name="mirror", connection="log", topic="mirror", key=("$.id",)),
    "store": TablePoint(name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",)),
}


def pipeline(*hops: tuple[str, str]) -> Pipeline:
    made = tuple(Hop(source=source, target=target, remedies=_REPORT) for source, target in hops)
    return Pipeline(name="demo", points=_POINTS, hops=made)


def test_a_chain_goes_from_where_nothing_leads_in_to_where_nothing_leads_out() -> None:
    made = pipeline(("outbox", "orders"), ("orders", "mirror"), ("orders", "store"), ("mirror", "store"))

    assert point_chains(made) == [
        PointChain(points=("outbox", "orders", "mirror", "store"), reach=Reach.LEDGER),
        PointChain(points=("outbox", "orders", "store"), reach=Reach.LEDGER),
    ]
    assert (first_points(made), reach_of(made)) == (["outbox"], Reach.LEDGER)


def test_the_weakest_chain_is_the_reach_of_a_pipeline() -> None:
    made = pipeline(("outbox", "store"), ("orders", "store"))

    assert [chain.reach for chain in point_chains(made)] == [Reach.LEDGER, Reach.LOG]
    assert reach_of(made) is Reach.LOG


def test_a_topic_that_another_topic_feeds_begins_no_chain() -> None:
    assert first_points(pipeline(("orders", "mirror"), ("mirror", "store"))) == ["orders"]
