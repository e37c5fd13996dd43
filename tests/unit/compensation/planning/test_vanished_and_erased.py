"""Test what is planned for keys that are in conflict, have vanished or were erased."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.draft import draft_plan, plan_actions
from makewhole.model.hops import Remedy
from makewhole.model.points import Erased, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of, with_evidence

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
    assert [one.refusal for one in draft.refusals] == [
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
