"""Test the question that a run asks a person, made from a real plan on real servers, and what is kept of it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from makewhole.compensation.approval import ask
from makewhole.compensation.approval.page import escaped
from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Approval
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import Finding, HopCounts, Verdict
from makewhole.orchestration.steps.repairing import log_unanswered
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HOP = "flights→warehouse"


@pytest.fixture(autouse=True)
def service(world: PlanWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text("groups: {payments: [anna, ben]}")
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    monkeypatch.setenv("MAKEWHOLE_GROUPS", str(tmp_path / "groups.yaml"))
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=0, by=("lead", "group:payments")))


def test_the_page_has_counts_shapes_and_who_may_and_no_key_or_value(world: PlanWorld) -> None:
    plan = waiting(world)
    shown = ask.approval_request(world.context, plan, ["Why: <b>now</b>"])
    body = shown["body"]
    assert (shown["plan"], shown["sha256"], shown["pipeline"]) == (plan.id, plan.sha256, world.pipeline.name)
    assert "| upsert | warehouse (pg:dw.departures) | 2 | 1 | 1 | 0 | 0 | archive 2 |" in body
    assert "- 1 upsert warehouse: arrived: a row of this key appeared after the plan was made" in body
    assert "0 rows now, 1 after it; columns: id, delay" in body
    assert "Who may answer: lead, group:payments (anna, ben)." in body
    assert "Why: &lt;b&gt;now&lt;/b&gt;" in body
    assert f"`makewhole plan dry-run {plan.id}`" in body
    assert not [secret for secret in ("K471", "4711") if secret in json.dumps(shown)]


def test_what_is_kept_is_what_was_shown(world: PlanWorld) -> None:
    plan = waiting(world)
    shown = ask.approval_request(world.context, plan)
    kept = ask.page_record(shown, "run 1")
    digest = hashlib.sha256(f"{shown['subject']}\n{shown['body']}".encode()).hexdigest()
    assert kept == {"subject": shown["subject"], "body": shown["body"], "page_sha256": digest, "run": "run 1"}


def test_the_page_says_which_line_would_answer_what_is_no_part_of_the_plan(world: PlanWorld) -> None:
    world.remedies(HOP, duplicate=Remedy.REPORT)
    plan = waiting(world, world.finding(4713, Verdict.DUPLICATE))
    judged = HopResult(
        hop=HOP, counts=HopCounts(source_keys=10, matched=7, missing=2, duplicate=1), digest="", files={}
    )
    with connect(world.journal) as journal:
        hop_results.commit_results(journal, world.context.window, hop_results.RECONCILED, [judged])
    body = ask.approval_request(world.context, plan, reported=log_unanswered(world.context))["body"]
    sentences = (
        "1 duplicate on flights→warehouse: nothing is written, because the remedy is `report`",
        "`duplicate: quarantine` would move the rows too many in warehouse aside, restorable: 1 action at most; it "
        "would wait for a person",
        "To switch it on, write `compensation: {duplicate: quarantine}` on hop flights→warehouse, or add it to what "
        "the hop has there",
    )
    passage = "\n".join(("Not in this plan:", "", *(f"- {escaped(sentence)}" for sentence in sentences)))
    assert passage in body.split("\n\nSee keys")[0]
    assert plan.counts == {"upsert": 2}
    assert "K4713" not in body


def test_a_table_that_is_gone_does_not_keep_the_question_from_being_asked(world: PlanWorld) -> None:
    plan = waiting(world)
    world.sql("drop table dw.departures")
    body = ask.approval_request(world.context, plan)["body"]
    assert "**What it would do now is not known**: point warehouse: 'dw.departures' is not a table" in body
    assert "| upsert | 2 |" in body


def test_a_plan_without_a_possible_answer_is_not_asked_about(world: PlanWorld) -> None:
    plan = waiting(world)
    world.pipeline = replace(world.pipeline, approval=Approval(above_actions=0, by=("group:gone",)))
    with pytest.raises(RefusedError, match="names group gone, and the file of MAKEWHOLE_GROUPS has no person in it"):
        ask.approval_request(world.context, plan)
    assert "no person is asked" in ask.approval_request(world.context, replace(plan, state=PlanState.FROZEN))["body"]


def waiting(world: PlanWorld, *more: Finding) -> Plan:
    """Two rows to insert, of which one came by itself since; `more` are other findings of the window."""
    world.remedies(HOP, missing=Remedy.UPSERT)
    world.send([4711, 4712])
    findings = [world.finding(number, Verdict.MISSING) for number in (4711, 4712)]
    plan = world.plan([*findings, *more])
    world.sql("insert into dw.departures (id, delay) values ('K4712', 1)")
    assert isinstance(plan, Plan)
    assert plan.state is PlanState.AWAITING_APPROVAL
    return plan
