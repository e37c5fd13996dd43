"""Test that a plan leaves accepted findings as they are, and still knows of them."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.accepted_rows import AcceptedRows
from makewhole.compensation.planning.disputed import NOTHING_ELSEWHERE, OpenElsewhere
from makewhole.compensation.planning.draft import draft_batch
from makewhole.model.actions import Action, read_before
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of, with_lake

pytestmark = pytest.mark.unit

LEDGER_HOP, STORE_HOP, LAKE_HOP = "ledger→topic", "topic→store", "topic→lake"


def test_an_accepted_finding_has_no_action_and_no_refusal() -> None:
    findings = [finding_of(key, Verdict.MISSING, STORE_HOP) for key in ("a", "b")]
    accepted = {(STORE_HOP, findings[0].key_hash)}

    batch = draft_batch(pipeline_of(), findings, accepted=accepted)

    assert ([draft.action.key for _, draft in batch.drafts], batch.refusals, batch.actions) == (["b"], [], 1)


def test_what_an_accepted_finding_says_still_counts_for_others_of_its_key() -> None:
    """The row of a key that the topic lacks is not extra, whether the loss is accepted or not."""
    lost = finding_of("a", Verdict.MISSING, LEDGER_HOP)
    extra = finding_of("a", Verdict.UNEXPECTED, STORE_HOP)
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    assert len(draft_batch(pipeline, [extra]).drafts) == 1

    batch = draft_batch(pipeline, [lost, extra], accepted={(LEDGER_HOP, lost.key_hash)})

    assert batch.drafts == []


@pytest.mark.parametrize("is_of_this_window", [True, False])
def test_an_accepted_row_is_not_put_aside_for_the_record_of_its_key(is_of_this_window: bool) -> None:
    lost = finding_of("a", Verdict.MISSING, LEDGER_HOP)
    extra = finding_of("a", Verdict.UNEXPECTED, STORE_HOP)
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    names = frozenset({(STORE_HOP, extra.key_hash)})
    elsewhere = NOTHING_ELSEWHERE if is_of_this_window else OpenElsewhere(findings=[(1, extra)], accepted=names)
    findings = [lost, extra] if is_of_this_window else [lost]
    open_ones = OpenElsewhere(findings=elsewhere.findings)
    assert [
        draft.aside[0].action.target for _, draft in draft_batch(pipeline, findings, elsewhere=open_ones).drafts
    ] == ["store"]

    batch = draft_batch(pipeline, findings, elsewhere=elsewhere, accepted=names if is_of_this_window else ())

    assert batch.drafts == []
    assert [(refused.hop, refused.refusal) for refused in batch.refusals] == [
        (
            LEDGER_HOP,
            Refusal(
                RefusalCode.ACCEPTED,
                "a person accepted what topic→store says of this key, and its rows in store stay as they are; "
                "take that word back (`makewhole accept --revoke ID`), or accept this finding, too",
            ),
        )
    ]


def test_no_other_hop_touches_the_rows_that_a_person_accepted() -> None:
    """The table is another point of the other hop: what it is counts."""
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    store = replace(pipeline.points["store"], identity="one")
    again = TablePoint(
        name="again", kind=PointKind.STORE, connection="other", table="dw.f", key=("id",), identity="one"
    )
    second = Hop(source="topic", target="again", remedies=pipeline.hops[1].remedies)
    pipeline = replace(
        pipeline, points={**pipeline.points, "store": store, "again": again}, hops=(*pipeline.hops, second)
    )
    findings = [finding_of("a", Verdict.UNEXPECTED, hop) for hop in (STORE_HOP, "topic→again")]

    batch = draft_batch(pipeline, findings, accepted={(STORE_HOP, findings[0].key_hash)})

    assert batch.drafts == []
    assert [(refused.hop, refused.refusal.code) for refused in batch.refusals] == [
        ("topic→again", RefusalCode.ACCEPTED)
    ]


@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("remedy", [Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT, Remedy.QUARANTINE])
def test_an_action_names_the_hops_whose_acceptance_stops_it_and_is_stopped_by_no_other(
    remedy: Remedy, semantics: Semantics
) -> None:
    """A table and a topic are filled from the topic, and a second table from that. What is sent overwrites rows under
    `upsert`, and elsewhere adds some where a person accepted that there are none."""
    clean = TopicPoint(name="clean", connection="kafka", topic="clean", key=("$.id",))
    far = TablePoint(name="far", kind=PointKind.STORE, connection="pg", table="dw.far", key=("id",))
    pipeline = pipeline_of()
    ends = (("topic", "clean"), ("clean", "far"))
    more = [replace(pipeline.hops[1], source=source, target=target) for source, target in ends]
    hops = [replace(hop, semantics=semantics) for hop in (*pipeline.hops, *more)]
    pipeline = replace(pipeline, points={**pipeline.points, "clean": clean, "far": far}, hops=tuple(hops))
    hop = pipeline.hops[0] if remedy is Remedy.PRODUCE else pipeline.hops[1]
    is_sent = remedy in (Remedy.PRODUCE, Remedy.REDELIVER)
    target = "topic" if is_sent else "store"
    action = Action(
        seq=0, hop=hop.name, target=target, key="a", key_hash="0a", before=read_before(remedy, '{"place":""}')
    )
    changed = (STORE_HOP, "clean→far") if is_sent else (STORE_HOP,)

    assert AcceptedRows(pipeline, []).hops(hop, action) == changed
    stopped = [
        passed_hop.name
        for passed_hop in hops
        if AcceptedRows(pipeline, [(passed_hop.name, "0a")]).refusal(hop, action) is not None
    ]
    assert stopped == [*changed]
    assert AcceptedRows(pipeline, [(passed_hop.name, "0b") for passed_hop in hops]).refusal(hop, action) is None


@pytest.mark.parametrize("is_of_this_window", [True, False])
def test_a_record_is_not_sent_again_where_a_person_accepted_that_a_reader_lacks_it(is_of_this_window: bool) -> None:
    pipeline = with_lake(pipeline_of())
    here, there = (finding_of("a", Verdict.MISSING, hop) for hop in (STORE_HOP, LAKE_HOP))
    names = frozenset({(LAKE_HOP, there.key_hash)})
    (draft,) = (draft for _, draft in draft_batch(pipeline, [here, there]).drafts)
    assert draft.action.before.accepted_by == (STORE_HOP, LAKE_HOP)

    elsewhere = NOTHING_ELSEWHERE if is_of_this_window else OpenElsewhere(accepted=names)
    findings = [here, there] if is_of_this_window else [here]
    batch = draft_batch(pipeline, findings, elsewhere=elsewhere, accepted=names if is_of_this_window else ())

    assert batch.drafts == []
    assert [(refused.hop, refused.refusal.code) for refused in batch.refusals] == [(STORE_HOP, RefusalCode.ACCEPTED)]


def test_nothing_is_written_of_a_key_that_was_erased_on_request() -> None:
    findings = [finding_of(key, Verdict.MISSING, STORE_HOP) for key in ("a", "b")]

    batch = draft_batch(
        pipeline_of(), findings, erased={(findings[0].hop, findings[0].key_hash): "erased on request at noon"}
    )

    assert [draft.action.key for _, draft in batch.drafts] == ["b"]
    assert [(refused.key_hash, refused.refusal) for refused in batch.refusals] == [
        (findings[0].key_hash, Refusal(RefusalCode.ERASED, "its key was erased on request at noon"))
    ]
