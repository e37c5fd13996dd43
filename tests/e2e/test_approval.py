"""Test plans that need a person, in Airflow: only planned, rejected, approved, ignored; and who may answer."""

import hashlib
import html
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version

import pytest

from tests.e2e.scenarios.approvals import Answered, Asked, Planned
from tests.e2e.scenarios.pipeline_files import ACTIONS, MISTAKES
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import Stage
from tests.world.people import TakenPosts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_plan_only_shows_the_plan_changes_nothing_and_exits_with_1(planned: Planned) -> None:
    """Takes long: a window is waited for."""
    window = planned.window
    assert planned.exit_code == 1
    assert (window["revision"], window["state"], window["certificate"]) == (1, "gaps", None)
    assert window["plan"]["actions"] == ACTIONS
    assert window["reason"].endswith("Only a plan was asked for")
    assert planned.after == planned.before


def test_findings_are_what_was_planted(answered: Answered, stage: Stage) -> None:
    """Takes long: two windows are waited for."""
    findings = stage.journal(
        "select revision, hop, verdict, count(*) from makewhole.finding where pipeline = 'answered' "
        "and revision < 3 group by 1, 2, 3 order by 1, 2, 3"
    )
    expected = [
        ("orders→warehouse", "duplicate", len(MISTAKES.loaded_twice)),
        ("orders→warehouse", "missing", len(MISTAKES.never_loaded)),
        ("outbox→orders", "duplicate", len(MISTAKES.sent_twice)),
        ("outbox→orders", "missing", len(MISTAKES.never_sent)),
    ]
    assert findings == [(revision, *row) for revision in (1, 2) for row in expected]


def test_who_may_not_answer_is_refused_and_the_plan_goes_on_waiting(answered: Answered) -> None:
    answers = answered.rejected.answers
    assert (answers["viewer"], answers["admin"]) == (403, 403)
    assert answers["state after both"] == "awaiting_input"
    assert answered.approved.answers["admin"] == 4
    plan = answered.approved.window["plan"]["id"]
    assert (
        f"admin may not answer for plan {plan}; oncall may. Airflow answered 403"
        in (answered.approved.answers["admin's message"])
    )


def test_a_rejected_plan_writes_nothing_and_leaves_the_window_open(answered: Answered) -> None:
    rejected = answered.rejected
    assert rejected.answers["oncall"] == 200
    assert rejected.after == rejected.before
    assert (rejected.window["revision"], rejected.window["state"], rejected.window["certificate"]) == (1, "gaps", None)
    assert "The plan was rejected: rejected by oncall" in rejected.window["reason"]
    assert rejected.approval == ("rejected", "oncall", rejected.window["plan"]["sha256"])
    assert (rejected.tasks["compensate"], rejected.tasks["certify"]) == ("skipped", "failed")


def test_people_hear_of_each_question_of_the_gaps_and_when_all_is_clear(answered: Answered, people: TakenPosts) -> None:
    plans = [asked.window["plan"]["id"] for asked in (answered.rejected, answered.approved)]
    sent = [post["subject"] for _, post in people.posts if post["pipeline"] == "answered"]
    gaps = 1 + next(at for at, subject in enumerate(sent) if "open findings" in subject)

    assert sent[0] == f"[makewhole] answered: window 1 waits for an answer to plan {plans[0]} (7 actions)"
    assert any(f"waits for an answer to plan {plans[1]}" in subject for subject in sent[gaps:])
    assert sent[-1] == "[makewhole] answered: all clear"
    assert len(sent) == len(set(sent)), sent
    first = people.posts[0][1]["text"]
    assert f"   next: makewhole plan approve {plans[0]}" in first
    assert "4 h 0 min left" in first or "3 h 59 min left" in first


def test_an_answer_is_given_once(answered: Answered) -> None:
    assert answered.rejected.answers["oncall again"] == 409


def test_an_approved_plan_is_done_and_the_journal_says_who_approved_it(answered: Answered) -> None:
    approved = answered.approved
    plan = approved.window["plan"]
    assert approved.answers["oncall"] == 0
    assert approved.answers["oncall's message"].endswith(f"approved: plan {plan['id']}\n")
    assert approved.approval == ("approved", "oncall", plan["sha256"])
    assert (approved.window["revision"], approved.window["state"]) == (2, "certified")
    assert (plan["actions"], plan["state"]) == (ACTIONS, "done")
    assert approved.after != approved.before


def test_the_certificate_signs_the_version_the_plan_and_who_approved_it(answered: Answered, stage: Stage) -> None:
    plan = answered.approved.window["plan"]
    ((body, signed_by),) = stage.journal(
        "select body, signed_by from makewhole.certificate where pipeline = 'answered' and revision = 2"
    )
    assert body["decided_by"]["makewhole"] == version("makewhole")
    signed = body["how"]["plan"]
    assert (signed["id"], signed["sha256"], signed["actions"]) == (plan["id"], plan["sha256"], ACTIONS)
    assert signed["approval"] == {"sha256": plan["sha256"], "decision": "approved", "by": "oncall"}
    assert body["signed_by"] == signed_by
    chain = stage.run_command("certificate", "verify", "answered", "--json")
    assert (chain.code, chain.document["keys"], chain.document["problems"]) == (0, [signed_by], [])


def test_a_paused_plan_holds_no_worker_and_goes_on_when_it_is_resumed(answered: Answered) -> None:
    paused, plan = answered.approved.answers["while paused"], answered.approved.window["plan"]["id"]
    why = "paused by admin: the warehouse is busy"
    code, message = answered.approved.answers["paused by a viewer"]
    assert (code, "viewer may not steer plans of answered: Airflow does not let them clear tasks" in message) == (
        4,
        True,
    )
    assert answered.approved.answers["paused"] == {"id": plan, "state": "awaiting_approval", "reason": why}
    assert paused["tasks"]["compensate"] == "up_for_reschedule"
    assert not {"running", "queued"} & set(paused["tasks"].values())
    assert (
        f"plan {plan} waits ({why}); `makewhole plan resume {plan}` lets it go on; looking again in 60 s"
        in (paused["log"])
    )
    assert (paused["plan"]["state"], paused["leases"], paused["receipts"]) == ("running", [], 0)
    assert paused["resumed"] == {"id": plan, "state": "running", "reason": "resumed by admin"}
    assert paused["tries"] == 1
    assert answered.approved.window["state"] == "certified"


def test_the_journal_says_what_was_seen_and_page_and_command_line_show_the_same(answered: Answered) -> None:
    approved = answered.approved
    plan, page, seen = approved.window["plan"], approved.answers["page"], approved.seen
    assert seen is not None
    assert (seen["subject"], seen["body"]) == (page["subject"], page["body"])
    assert seen["page_sha256"] == hashlib.sha256(f"{page['subject']}\n{page['body']}".encode()).hexdigest()
    assert f"SHA-256 `{plan['sha256']}`" in page["body"]
    assert "Who may answer: group:watch (oncall)." in page["body"]
    lines = approved.answers["oncall's message"].splitlines()[:-1]
    assert _characters("\n".join(lines)) == _characters(f"{page['subject']}\n{page['body']}")


def _characters(text: str) -> Counter[str]:
    """Count what a text in Markdown shows, or one that it was drawn as: cells of tables may go on in the next line."""
    return Counter(
        character for character in html.unescape(text) if not character.isspace() and character not in "\\-─•*`|"
    )


def test_the_page_forecasts_what_was_done_and_shows_no_key(answered: Answered) -> None:
    page, looked = answered.approved.answers["page"]["body"], answered.approved.answers["dry run"]
    assert looked["actions"] == {"would": sum(ACTIONS.values()), "refused": 0, "waits": 0, "done": 0}
    for part in looked["parts"]:
        assert f"| {part['remedy']} | {part['target']} (" in page
    keys = {sample["key"] for sample in looked["samples"]}
    assert keys
    assert not [key for key in keys if key in page]


def test_after_the_approval_plain_clients_find_every_order_everywhere(
    answered: Answered, shops: Mapping[str, ScenarioShop]
) -> None:
    shop = shops["answered"]
    assert shop.is_whole()
    replayed = {f"O{number}" for number in MISTAKES.never_sent + MISTAKES.never_loaded}
    assert shop.lineage() == {answered.approved.window["plan"]["id"]: replayed}


def test_a_plan_that_is_not_answered_expires_and_nothing_is_done(ignored: Asked) -> None:
    assert ignored.window["plan"]["actions"] == {"redeliver": 1}
    assert (ignored.window["plan"]["state"], ignored.window["plan"]["reason"]) == (
        "rejected",
        "no answer came in time",
    )
    assert ignored.approval == ("timed_out", None, ignored.window["plan"]["sha256"])
    assert (ignored.window["state"], ignored.window["certificate"]) == ("gaps", None)
    assert ignored.after == ignored.before
    assert ignored.tasks["compensate"] == "skipped"
