"""Test what is planned for keys that are in conflict, have vanished or were erased."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.draft import draft_plan
from makewhole.model.hops import Remedies, Remedy, Semantics
from makewhole.model.points import Erased, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of, plan_actions, with_evidence, with_lake

pytestmark = pytest.mark.unit


def test_a_conflict_is_never_planned_and_what_has_vanished_only_where_the_file_asks_for_it() -> None:
    findings = [finding_of("c", Verdict.CONFLICT, "topic→store"), finding_of("v", Verdict.VANISHED, "topic→store")]

    assert plan_actions(pipeline_of(), findings) == []
    asked = plan_actions(pipeline_of(vanished=Remedy.UPSERT), findings)
    assert [(action.remedy, action.key) for action in asked] == [(Remedy.UPSERT, "v")]
    (sent,) = plan_actions(pipeline_of(vanished=Remedy.REDELIVER), findings)
    assert (sent.key, sent.before.absent_at) == ("v", ("store",))


def test_a_key_that_its_source_has_with_different_values_is_not_written() -> None:
    lost = with_evidence(finding_of("a", Verdict.MISSING, "ledger→topic"), source_contradicts=True)

    draft = draft_plan(pipeline_of(), [lost], window_keys=1)

    assert draft.drafts == ()
    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(
            RefusalCode.CONFLICT,
            "ledger has this key with different values; say which is right, then run the window again",
        )
    ]


def test_a_record_names_the_stores_that_it_reaches_and_that_name_which_keys_were_erased() -> None:
    pipeline = pipeline_of()
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    findings = [finding_of("a", Verdict.MISSING, "ledger→topic"), finding_of("b", Verdict.MISSING, "topic→store")]
    points = {**pipeline.points, "store": replace(store, erased=Erased(column="deleted_at"))}

    actions = plan_actions(replace(pipeline, points=points), findings)

    assert [(action.remedy, action.before.erasable) for action in actions] == [
        (Remedy.PRODUCE, ("store",)),
        (Remedy.REDELIVER, ("store",)),
    ]
    assert all(not action.before.erasable for action in plan_actions(pipeline, findings))


IS_GONE = Refusal(
    RefusalCode.TWICE,
    "lake had this key and has lost it since it was proven (topic→lake calls it vanished): it would get back what was "
    "deleted there; write `vanished: upsert` or `vanished: redeliver` on hop topic→lake if it is to come back, or "
    "repair what else lacks the key by `upsert`, or by a replay topic",
)


@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.VANISHED, Verdict.MISMATCHED])
def test_a_record_is_not_sent_again_where_another_reader_deleted_the_key(
    verdict: Verdict, semantics: Semantics
) -> None:
    pipeline = pipeline_of(vanished=Remedy.REDELIVER, mismatched=Remedy.REDELIVER)
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    pipeline = replace(pipeline, points={**pipeline.points, "store": replace(store, version="version")})
    pipeline = with_lake(pipeline, semantics=semantics)
    findings = [finding_of("a", verdict, "topic→store"), finding_of("b", verdict, "topic→store")]
    gone = finding_of("a", Verdict.VANISHED, "topic→lake")
    assert [action.key for action in plan_actions(pipeline, findings)] == ["a", "b"]

    draft = draft_plan(pipeline, [*findings, gone], window_keys=1000)

    assert [drafted.action.key for drafted in draft.drafts] == ["b"]
    assert [(refused.hop, refused.refusal) for refused in draft.refusals] == [("topic→store", IS_GONE)]


def test_a_record_is_sent_again_to_a_reader_that_deleted_the_key_where_the_file_brings_it_back_there() -> None:
    back = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT, vanished=Remedy.REDELIVER)
    findings = [finding_of("a", Verdict.MISSING, "topic→store"), finding_of("a", Verdict.VANISHED, "topic→lake")]

    (sent,) = plan_actions(with_lake(pipeline_of(), remedies=back), findings)

    assert (sent.remedy, sent.before.once) == (Remedy.REDELIVER, ("lake", "store"))


@pytest.mark.parametrize("remedy", [Remedy.REDELIVER, Remedy.UPSERT])
def test_a_reader_that_does_not_get_the_record_keeps_nothing_back(remedy: Remedy) -> None:
    """Leave out a reader under `despite`, one of no replay topic, and a row written straight into the table."""
    pipeline = with_lake(pipeline_of(missing=remedy))
    hops = [replace(hop, redeliver_despite=("lake-loader",)) for hop in pipeline.hops]
    findings = [finding_of("a", Verdict.MISSING, "topic→store"), finding_of("a", Verdict.VANISHED, "topic→lake")]

    assert [action.remedy for action in plan_actions(replace(pipeline, hops=tuple(hops)), findings)] == [remedy]


@pytest.mark.parametrize("remedy", [Remedy.REDELIVER, Remedy.UPSERT])
def test_a_row_that_another_hop_into_its_table_calls_vanished_is_not_brought_back(remedy: Remedy) -> None:
    pipeline = pipeline_of(missing=remedy)
    direct = replace(pipeline.hops[1], source="ledger")
    findings = [finding_of("a", Verdict.MISSING, "topic→store"), finding_of("a", Verdict.VANISHED, "ledger→store")]

    assert plan_actions(replace(pipeline, hops=(*pipeline.hops, direct)), findings) == []
