"""No action of a plan makes another one wrong: pure, over drafts."""

from dataclasses import replace

import pytest

from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from tests.unit.compensation.planning.drafted import plan_actions

pytestmark = pytest.mark.unit

REMEDIES = Remedies(
    missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.UPSERT, unexpected=Remedy.QUARANTINE
)


def pipeline() -> Pipeline:
    """A ledger feeds two topics, one behind the other, and a store; the last topic feeds the same store, whose loader
    overwrites."""

    def table(name: str, kind: PointKind) -> TablePoint:
        return TablePoint(name=name, kind=kind, connection="pg", table=name, key=("id",))

    def topic(name: str) -> TopicPoint:
        return TopicPoint(name=name, connection="kafka", topic=name, key=("$.id",))

    def hop(source: str, target: str, missing: Remedy) -> Hop:
        return Hop(source=source, target=target, remedies=replace(REMEDIES, missing=missing))

    return Pipeline(
        name="p",
        points={
            "ledger": table("ledger", PointKind.LEDGER),
            "raw": topic("raw"),
            "clean": topic("clean"),
            "store": replace(table("store", PointKind.STORE), version="version"),
        },
        hops=(
            hop("ledger", "raw", Remedy.PRODUCE),
            hop("raw", "clean", Remedy.REDELIVER),
            hop("clean", "store", Remedy.REDELIVER),
            hop("ledger", "store", Remedy.UPSERT),
        ),
    )


def finding(key: str, verdict: Verdict, hop: str) -> Finding:
    evidence = {"source": [{"partition": 0, "offset": 1}], "target_copies": 1}
    cause = Cause.NEVER_PRODUCED if verdict is Verdict.MISSING else Cause.NOT_IN_SOURCE
    return Finding(hop=hop, key=key, key_hash=key * 32, verdict=verdict, cause=cause, evidence=evidence)


def actions(*findings: Finding) -> list[tuple[str, str, str]]:
    return [(action.key, action.remedy.value, action.hop) for action in plan_actions(pipeline(), findings)]


def test_a_row_whose_record_is_produced_however_far_upstream_is_not_moved_aside() -> None:
    missing = finding("a", Verdict.MISSING, "ledger→raw")
    extra = finding("a", Verdict.UNEXPECTED, "clean→store")
    assert actions(missing, extra) == [("a", "produce", "ledger→raw")]
    assert actions(extra) == [("a", "quarantine", "clean→store")]
    assert actions(missing, replace(extra, key="b", key_hash="b" * 32)) == [
        ("a", "produce", "ledger→raw"),
        ("b", "quarantine", "clean→store"),
    ]


def test_a_row_whose_key_is_missing_further_up_is_not_moved_aside_though_its_record_is_not_sent() -> None:
    """A topic behind may have the record already: nothing is sent, and the ledger has the key all the same."""
    lost = replace(finding("a", Verdict.MISSING, "ledger→raw"), cause=Cause.TRUNCATED)
    assert actions(lost, finding("a", Verdict.UNEXPECTED, "clean→store")) == []


def test_a_row_whose_record_goes_through_the_topic_before_once_more_is_not_moved_aside() -> None:
    missing = finding("a", Verdict.MISSING, "raw→clean")
    assert actions(missing, finding("a", Verdict.UNEXPECTED, "clean→store")) == [("a", "redeliver", "raw→clean")]


def test_a_row_that_a_loader_will_write_is_not_inserted_beside_it() -> None:
    missing = finding("a", Verdict.MISSING, "ledger→store")
    assert actions(finding("a", Verdict.MISSING, "ledger→raw"), missing) == [("a", "produce", "ledger→raw")]
    assert actions(missing) == [("a", "upsert", "ledger→store")]


def test_a_row_that_no_loader_will_write_is_inserted_where_its_record_is_not_sent() -> None:
    """The topic behind holds the key: to produce its record would send it there a second time."""
    missing = [finding("a", Verdict.MISSING, hop) for hop in ("ledger→raw", "ledger→store")]
    assert actions(*missing, finding("a", Verdict.UNEXPECTED, "raw→clean")) == [("a", "upsert", "ledger→store")]


def test_a_record_that_is_sent_again_reaches_every_reader_of_its_topic_and_no_row_is_inserted_beside() -> None:
    missing = finding("a", Verdict.MISSING, "clean→store")
    assert actions(missing, finding("a", Verdict.MISSING, "ledger→store")) == [("a", "redeliver", "clean→store")]
    sibling = finding("a", Verdict.MISSING, "raw→clean")
    assert actions(sibling, finding("a", Verdict.MISSING, "ledger→store")) == [("a", "redeliver", "raw→clean")]


@pytest.mark.parametrize("verdict", [Verdict.DUPLICATE, Verdict.MISMATCHED])
def test_a_row_that_one_hop_keeps_is_not_moved_aside_for_another(verdict: Verdict) -> None:
    kept = finding("a", verdict, "ledger→store")
    remedy = "quarantine" if verdict is Verdict.DUPLICATE else "upsert"
    assert actions(finding("a", Verdict.UNEXPECTED, "clean→store"), kept) == [("a", remedy, "ledger→store")]


def test_what_two_hops_say_of_the_same_rows_is_done_once() -> None:
    twice = [finding("a", Verdict.DUPLICATE, hop) for hop in ("ledger→store", "clean→store")]
    assert actions(*twice) == [("a", "quarantine", "clean→store")]


@pytest.mark.parametrize("verdict", [Verdict.DUPLICATE, Verdict.MISMATCHED, Verdict.UNEXPECTED])
def test_no_row_is_moved_or_written_whose_record_is_in_doubt_further_up(verdict: Verdict) -> None:
    row = finding("a", verdict, "clean→store")

    assert actions(row)
    assert not actions(finding("a", Verdict.UNDECIDABLE, "ledger→raw"), row)
    assert actions(finding("b", Verdict.UNDECIDABLE, "ledger→raw"), row)


def test_a_record_that_two_ledgers_have_is_produced_once() -> None:
    second = TablePoint(name="archive", kind=PointKind.LEDGER, connection="pg", table="archive", key=("id",))
    both = pipeline()
    hop = replace(both.hops[0], source="archive")
    both = replace(both, points={**both.points, "archive": second}, hops=(*both.hops, hop))
    findings = [finding("a", Verdict.MISSING, "ledger→raw"), finding("a", Verdict.MISSING, "archive→raw")]
    made = [(action.remedy, action.hop) for action in plan_actions(both, findings)]
    assert made == [(Remedy.PRODUCE, "ledger→raw")]


def test_rows_at_two_points_of_one_table_are_moved_aside_once() -> None:
    both = pipeline()
    named = {name: replace(point, identity=name) for name, point in both.points.items()}
    named["shelf"] = replace(named["store"], name="shelf")
    both = replace(both, points=named, hops=(*both.hops, replace(both.hops[2], target="shelf")))
    findings = [finding("a", Verdict.UNEXPECTED, "clean→store"), finding("a", Verdict.UNEXPECTED, "clean→shelf")]
    made = [(action.remedy, action.hop) for action in plan_actions(both, findings)]
    assert made == [(Remedy.QUARANTINE, "clean→store")]


def test_a_record_that_two_topics_have_and_a_store_lacks_is_sent_once() -> None:
    both = pipeline()
    hop = replace(both.hops[2], source="raw")
    both = replace(both, hops=(*both.hops, hop))
    findings = [finding("a", Verdict.MISSING, "clean→store"), finding("a", Verdict.MISSING, "raw→store")]
    made = [(action.remedy, action.hop) for action in plan_actions(both, findings)]
    assert made == [(Remedy.REDELIVER, "clean→store")]
