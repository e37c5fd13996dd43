"""Test whom a redelivered record reaches: what is asked before it is sent, and what is never sent."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.redelivery import Readers, Redelivery
from makewhole.compensation.verification.other_stores import reached_hops
from makewhole.journal.written_keys import RedeliveredKey
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit

OWN = "orders→warehouse"
REMEDIES = Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def table(name: str) -> TablePoint:
    return TablePoint(name=name, kind=PointKind.STORE, connection="db", table=name, key=("id",))


def topic(name: str) -> TopicPoint:
    return TopicPoint(name=name, connection="log", topic=name, key=("$.id",))


def hop(source: str, target: str, group: str | None = None) -> Hop:
    return Hop(source=source, target=target, remedies=REMEDIES, consumer_group=group)


def pipeline(*hops: Hop) -> Pipeline:
    topics = {name: topic(name) for name in ("orders", "onward", "retry")}
    stores = {name: table(name) for name in ("warehouse", "lake", "behind")}
    return Pipeline(name="shop", points={**topics, **stores}, hops=hops)


def missing(name: str = OWN) -> Finding:
    return Finding(hop=name, key="k", key_hash="a", verdict=Verdict.MISSING, cause=Cause.LOST_AFTER_TOPIC)


WAREHOUSE, LAKE = hop("orders", "warehouse", "dw"), hop("orders", "lake", "lake-loader")
ONWARD, BEHIND = hop("orders", "onward", "copier"), hop("onward", "behind", "behind-loader")


@pytest.mark.parametrize(
    ("hops", "findings", "expected"),
    [
        ((WAREHOUSE,), [], {"once": ["warehouse"], "groups": ["dw"]}),
        ((WAREHOUSE, LAKE), [], {"once": ["lake", "warehouse"], "groups": ["dw", "lake-loader"]}),
        (
            (replace(WAREHOUSE, redeliver_despite=("lake-loader", "audit")), LAKE),
            [],
            {"once": ["warehouse"], "groups": ["audit", "dw", "lake-loader"]},
        ),
        (
            (WAREHOUSE, replace(LAKE, semantics=Semantics.UPSERT)),
            [],
            {"once": ["warehouse"], "groups": ["dw", "lake-loader"]},
        ),
        (
            (WAREHOUSE, ONWARD, BEHIND),
            [missing("orders→onward")],
            {"once": ["behind", "onward", "warehouse"], "groups": ["copier", "dw"]},
        ),
        ((replace(WAREHOUSE, redeliver_to="retry"), LAKE), [], {"once": ["warehouse"]}),
        (
            (replace(WAREHOUSE, redeliver_to="retry"), replace(LAKE, redeliver_to="retry")),
            [],
            {"once": ["lake", "warehouse"]},
        ),
    ],
)
def test_every_point_that_would_get_a_second_copy_is_asked(
    hops: tuple[Hop, ...], findings: list[Finding], expected: dict[str, list[str]]
) -> None:
    redelivery = Redelivery(pipeline(*hops), [missing(), *findings], Readers(groups={"orders": ("dw",)}))
    reached = {"once": redelivery.reach(hops[0], missing()), "groups": redelivery.known_groups(hops[0])}

    assert {name: some for name, some in reached.items() if some} == {
        name: set(some) for name, some in expected.items()
    }


@pytest.mark.parametrize(
    ("hops", "readers", "refusal"),
    [
        (
            (WAREHOUSE, ONWARD),
            Readers(),
            Refusal(
                RefusalCode.TWICE,
                "onward is filled from orders, too, and is not known to lack this key; 'redeliver: {to: source, "
                "despite: [copier]}' on hop orders→warehouse if it does no harm, or use upsert or a replay topic",
            ),
        ),
        (
            (replace(WAREHOUSE, redeliver_despite=("audit",)),),
            Readers(groups={"orders": ("audit", "bi", "dw", "export")}),
            Refusal(
                RefusalCode.TWICE,
                "groups bi, export read orders, and nothing says what a second copy does there; write "
                "'consumer_group: bi' on the hop that it loads, or 'redeliver: {to: source, despite: [audit, bi, "
                "export]}' on hop orders→warehouse if it does no harm, or use upsert or a replay topic",
            ),
        ),
        (
            (WAREHOUSE,),
            Readers(silent={"orders": "refused"}),
            Refusal(
                RefusalCode.NOT_KNOWN,
                "the groups that read orders cannot be listed: refused; use upsert or a replay topic",
            ),
        ),
    ],
)
def test_what_may_reach_a_reader_twice_is_refused(hops: tuple[Hop, ...], readers: Readers, refusal: Refusal) -> None:
    assert Redelivery(pipeline(*hops), [missing()], readers).reach(hops[0], missing()) == refusal


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        ((WAREHOUSE,), []),
        ((WAREHOUSE, LAKE), ["orders→lake"]),
        ((WAREHOUSE, ONWARD, BEHIND), ["onward→behind"]),
        ((replace(WAREHOUSE, redeliver_to="retry"), LAKE), []),
        ((replace(WAREHOUSE, redeliver_to="retry"), replace(LAKE, redeliver_to="retry")), ["orders→lake"]),
        ((replace(WAREHOUSE, redeliver_to="retry"), LAKE, hop("retry", "behind")), ["retry→behind"]),
    ],
)
def test_verify_reads_every_store_that_a_record_reached(hops: tuple[Hop, ...], expected: list[str]) -> None:
    sent = RedeliveredKey(hop=OWN, key="k", key_hash="a", plan="p", target="orders")

    reached = reached_hops(pipeline(*hops), [sent])

    assert [(reach.hop.name, dict(reach.keys)) for reach in reached] == [(name, {"a": sent}) for name in expected]
