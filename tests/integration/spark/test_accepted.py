"""Test a person's word on whole windows: findings that stay as they are, the certificate that counts them, and what
opens them again."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.compensation.acceptance.carry_out import OpenedWindowAgain
from makewhole.compensation.approval.answer import Decision
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import acceptances, windows
from makewhole.journal.database import connect
from makewhole.model.acceptance import Acceptance, AcceptanceState, finding_id
from makewhole.model.errors import RefusedError
from makewhole.model.gate import GateAnswer
from makewhole.model.verdict import Cause
from makewhole.model.window import Window, WindowState
from makewhole.orchestration import acceptance_answers
from makewhole.signing.key_files import believed_keys
from makewhole.window.certificate_check import CheckedChain, check_chain
from makewhole.window.chain_evidence import read_evidence
from makewhole.window.context import WindowContext
from tests.integration.spark.test_unreadable_records import send_raw, wrapped
from tests.world.acceptances import accepted, answered, asked, carried_out, opened_again, revoked, stored
from tests.world.orders import Order, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

WRONG = "O4"
OBSERVE = {"missing": "report", "duplicate": "report", "mismatched": "report", "limits": "{share: 1.0}"}


def test_a_wrong_record_is_accepted_certified_and_opened_by_the_next_window_that_finds_its_key_changed(
    shop: ReconciledShop,
) -> None:
    first = wrong_record(shop)
    closed = shop.certify(first)
    assert (closed.state, shop.found(first, LEDGER_HOP)) == (
        WindowState.GAPS,
        {WRONG: ("mismatched", "value_differs")},
    )

    word, certified = accepted(shop, WRONG)

    assert (certified.state, certified.reason) == (WindowState.CERTIFIED, None)
    assert certified.certificate is not None
    body = certified.certificate.body
    assert (body["accepted"]["findings"], body["hops"][LEDGER_HOP]["accepted"]) == (1, {"mismatched": 1})
    (said,) = body["accepted"]["acceptances"]
    assert {name: said[name] for name in ("id", "by", "asked_by", "reason", "until", "findings")} == {
        "id": word.id,
        "by": "anna",
        "asked_by": "anna",
        "reason": "the record cannot be changed",
        "until": None,
        "findings": 1,
    }
    assert shop.outcome_of(first, LEDGER_HOP, WRONG) == ("accepted", "by anna: the record cannot be changed")
    assert checked(shop, first).problems == []

    shop.sql("update warehouse set amount = 777 where id = %s", WRONG)
    (again,) = next_window(shop)

    assert again.again.reasons == {"the rows of the key were changed since": 1}
    assert again.closed.state is WindowState.GAPS
    assert shop.outcome_of(first, LEDGER_HOP, WRONG)[0] == "open"
    # The second window reaches the row, too, and holds it to its record.
    assert [(one.number, one.state) for one in newest(shop)] == [(1, WindowState.GAPS), (2, WindowState.GAPS)]
    chain = checked(shop, first)
    assert (chain.problems, chain.uncertified) == (
        [],
        ["window 1 has no certificate that stands; the journal has it as gaps"],
    )


def test_an_acceptance_ends_with_its_time_or_when_it_is_taken_back_and_every_face_shows_it(
    shop: ReconciledShop,
) -> None:
    first = wrong_record(shop)
    shop.certify(first)
    word, certified = accepted(shop, WRONG, until=datetime.now(UTC) + timedelta(hours=1))
    assert certified.state is WindowState.CERTIFIED
    said = invoke("windows", "shop").stdout
    assert "certified, with 1 accepted" in said
    assert f"window 1: 1 finding accepted by anna until {word.until:%Y-%m-%d %H:%M} UTC ({word.id}): the record" in said
    assert f"accepted: by anna until {word.until:%Y-%m-%d %H:%M} UTC: the record cannot" in found_text()
    assert ": 1 certificate, with 1 accepted, sound" in invoke("certificate", "verify", "shop").stdout
    assert f"acceptance {word.id} of mismatched until" in " ".join(invoke("explain", "shop", WRONG).stdout.split())

    shop.journal_sql("update makewhole.acceptance set until = now() - interval '1 second'")

    (finding,) = [json.loads(line) for line in invoke("findings", "shop", "--json").stdout.splitlines()]
    assert (finding["outcome"], finding["acceptance"]) == ("open", None)
    document = json.loads(invoke("windows", "shop", "--json").stdout)
    (why,) = document["accepted"]["open_again"]
    assert (document["accepted"]["findings"], why[:22]) == (0, "it was accepted until ")
    assert json.loads(invoke("accept", "shop", "--json").stdout)["state"] == "expired"
    verified = invoke("certificate", "verify", "shop", "--json")
    # The signed body still says an hour from now: only what was signed is believed there.
    assert (verified.exit_code, json.loads(verified.stdout)["accepted"]) == (0, 1)

    (again,) = opened_again(shop)

    assert (again.closed.state, len(again.closed.revoked)) == (WindowState.GAPS, 1)
    assert opened_again(shop) == []
    second, certified = accepted(shop, WRONG)
    assert (certified.state, second.id == word.id) == (WindowState.CERTIFIED, False)

    closed = revoked(shop, second)

    assert closed.state is WindowState.GAPS
    assert closed.reason is not None
    assert closed.reason.startswith(f"acceptance {second.id} was revoked by ben (it was a mistake): {LEDGER_HOP}: ")
    assert shop.outcome_of(first, LEDGER_HOP, WRONG)[0] == "open"
    (revocation,) = closed.revoked
    assert revocation.body["because"]["reason"] == closed.reason
    with pytest.raises(RefusedError, match="only one that stands can be revoked"):
        revoked(shop, second, by="carl")
    chain = checked(shop, first)
    assert (chain.problems, chain.accepted) == ([], 0)
    kinds = shop.journal_sql("select kind, revokes from makewhole.certificate order by ordinal")
    assert kinds == [("certificate", None), ("revocation", 1), ("certificate", None), ("revocation", 3)]


def test_what_cannot_be_accepted_says_why(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.describe(compensation=OBSERVE)
    shop.write("outbox", made)
    shop.send([{**one, "amount": "99.00"} if one["id"] == WRONG else one for one in made])
    shop.write("warehouse", [{**one, "amount": "99.00"} if one["id"] == WRONG else one for one in made[:9]])
    context = shop.judge_and_ask_the_gate()
    with pytest.raises(RefusedError, match="is being judged; nothing can be accepted before its run has ended"):
        asked(shop, WRONG)
    shop.certify(context)
    refused: dict[str, dict[str, Any]] = {
        "has no finding nothing; nothing was accepted. `makewhole findings shop --window 1` shows": {"name": "nothing"},
        "shop has no window 7; there are 1": {"window": 7},
        "has no open finding of cause aborted_transaction: there is nothing to accept": {"cause": Cause.ABORTED},
        "an acceptance needs a reason: --reason TEXT": {"reason": "  "},
        "has passed; name a moment that is still to come": {"until": datetime(2020, 1, 1, tzinfo=UTC)},
        "an acceptance needs a name": {"by": ""},
    }
    for message, request in refused.items():
        names = [request.pop("name")] if "name" in request else []
        with pytest.raises(RefusedError, match=re.escape(message)):
            asked(shop, *names, **request)
    finding = finding_id(STORE_HOP, context_hash(shop, context, "O9"))
    assert asked(shop, finding).acceptance.findings == 1
    with pytest.raises(
        RefusedError, match=r"nothing was accepted. 1 finding cannot be accepted: accepted already, by anna"
    ):
        asked(shop, finding)

    shop.write("warehouse", [made[9]])
    with connect(shop.journal) as journal:
        (word,) = acceptances.of_pipeline(journal, "shop")
    closed = carried_out(shop, word)

    # The key came by itself: it needs no word, and the other one is open.
    assert (shop.outcome_of(context, STORE_HOP, "O9"), closed.state) == (("repaired", None), WindowState.GAPS)
    with pytest.raises(RefusedError, match="1 finding cannot be accepted: repaired already"):
        asked(shop, "O9")
    shop.sql("update outbox set amount = 5 where id = %s", WRONG)
    shop.sql("delete from warehouse where id = %s", "O1")
    both = asked(shop)
    assert (both.acceptance.findings, both.left) == (1, [])


def test_a_row_that_changed_since_it_was_judged_is_not_accepted(shop: ReconciledShop) -> None:
    shop.describe(compensation=OBSERVE)
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    shop.sql("update warehouse set amount = 3 where id = 'O7'")
    context, _ = shop.whole_way()
    assert set(shop.found(context, STORE_HOP)) == {"O4", "O5", "O7"}
    shop.sql("update warehouse set amount = 4 where id = 'O7'")
    shop.write("warehouse", [made[4]])

    with pytest.raises(RefusedError, match="warehouse has other values of it than were judged, so what was judged"):
        asked(shop, "O7")
    word = asked(shop)

    gone = "so what was judged is not there any more; run the window again"
    assert sorted(word.left) == [
        f"1 finding cannot be accepted: warehouse has it by now, {gone}",
        f"1 finding cannot be accepted: warehouse has other values of it than were judged, {gone}",
    ]
    assert (word.acceptance.findings, carried_out(shop, word.acceptance).state) == (1, WindowState.GAPS)


def test_another_person_says_yes_where_the_rules_ask_for_one(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"limits": "{share: 1.0}", "approval": "{above_actions: 0, by: [anna, ben]}"}
    shop.describe(compensation=OBSERVE | rules)
    first = wrong_record(shop, is_described=True)
    shop.certify(first)
    word = asked(shop, WRONG, run="manual").acceptance
    other = asked(shop, WRONG, by="carl").acceptance
    assert (word.state, word.decided_by) == (AcceptanceState.AWAITING_APPROVAL, None)
    assert shop.outcome_of(first, LEDGER_HOP, WRONG)[0] == "open"

    refused = {
        "anna": f"anna asked for acceptance {word.id}, so another person has to answer: anna, ben",
        "carl": f"carl may not answer for acceptance {word.id}; anna, ben may",
        "": f"an answer to acceptance {word.id} needs a name",
    }
    for person, message in refused.items():
        with pytest.raises(RefusedError, match=re.escape(message)):
            answered(shop, word, person)
    with pytest.raises(RefusedError, match="the answer is for another content"):
        answered(shop, replace(word, sha256="0" * 64), "ben")
    context = task_of(shop, word, monkeypatch)
    assert acceptance_answers.read_approvers(context).people == ("ben",)
    assert acceptance_answers.recorded_answer(context) is None

    foreign = task_of(shop, other, monkeypatch)
    for answer_in in (acceptance_answers.read_approvers, acceptance_answers.recorded_answer):
        with pytest.raises(AirflowFailException, match=f"{other.id} is not what this run of shop asked for"):
            answer_in(foreign)
    with pytest.raises(AirflowFailException, match=f"which asked for {word.id}; the answer is not taken"):
        acceptance_answers.copy_answer(foreign, approval_by("ben"))
    assert stored(shop, other).state is AcceptanceState.AWAITING_APPROVAL

    acceptance_answers.copy_answer(context, approval_by("ben"))

    assert stored(shop, word).state is AcceptanceState.STANDING
    given = acceptance_answers.recorded_answer(context)
    assert given is not None
    assert given["chosen_options"] == ["Approve"]
    closed = carried_out(shop, stored(shop, word))
    assert closed.certificate is not None
    (said,) = closed.certificate.body["accepted"]["acceptances"]
    assert (said["asked_by"], said["by"], said["sha256"]) == ("anna", "ben", word.sha256)
    # Two at once: the second yes finds the finding taken.
    with pytest.raises(RefusedError, match=r"1 of the findings of acceptance .* were accepted meanwhile by"):
        answered(shop, other, "ben")
    assert answered(shop, other, None, Decision.TIMED_OUT).state is AcceptanceState.REJECTED
    with pytest.raises(RefusedError, match="carl may not revoke acceptance"):
        revoked(shop, word, by="carl")


def test_a_file_that_joins_other_points_opens_nothing_and_stops_no_other_window(shop: ReconciledShop) -> None:
    first = wrong_record(shop)
    shop.certify(first)
    _, certified = accepted(shop, WRONG)
    assert certified.state is WindowState.CERTIFIED
    shop.sql("create table mirror (like warehouse including all)")
    more = {"more_points": {"mirror": store("db", "mirror")}, "more_hops": [{"from": "orders", "to": "mirror"}]}
    shop.describe(compensation=OBSERVE, **more)  # type: ignore[arg-type]
    assert opened_again(shop) == []

    shop.describe(compensation=OBSERVE, has_ledger=False)
    assert opened_again(shop) == []
    assert [one.state for one in newest(shop)] == [WindowState.CERTIFIED]

    shop.journal_sql("update makewhole.acceptance set until = now() - interval '1 second'")
    (again,) = opened_again(shop)
    assert again.closed.state is not WindowState.CERTIFIED, "it cannot be judged again by this file, and is open"
    assert len(again.closed.revoked) == 1
    assert opened_again(shop) == []


def test_a_yes_to_a_window_that_was_judged_again_is_refused(shop: ReconciledShop) -> None:
    shop.describe(compensation=OBSERVE | {"approval": "{above_actions: 0, by: [anna]}"})
    first = wrong_record(shop, is_described=True)
    shop.certify(first)
    with pytest.raises(RefusedError, match=r"only anna, who asks, may; name another one in compensation.approval.by"):
        asked(shop, WRONG)
    word = asked(shop, WRONG, by="ben").acceptance
    later, _ = shop.whole_way()

    with pytest.raises(RefusedError, match="was judged again since"):
        answered(shop, word, "anna")

    assert shop.outcome_of(later, LEDGER_HOP, WRONG)[0] == "open"


def test_a_window_that_is_judged_again_keeps_what_is_the_same_and_opens_what_is_not(shop: ReconciledShop) -> None:
    first = wrong_record(shop)
    shop.certify(first)
    accepted(shop, WRONG)

    second = shop.judge_and_ask_the_gate()

    assert (second.window.revision, gate(shop, second)) == (2, GateAnswer.PASS)
    closed = shop.certify(second)
    assert closed.certificate is not None
    assert (closed.state, closed.certificate.accepted) == (WindowState.CERTIFIED, 1)
    assert shop.outcome_of(second, LEDGER_HOP, WRONG) == ("accepted", "by anna: the record cannot be changed")

    shop.sql("update outbox set amount = 44 where id = %s", WRONG)
    third, closed = shop.whole_way()

    assert (closed.state, [one.revokes for one in closed.revoked]) == (WindowState.GAPS, [1, 2])
    assert shop.outcome_of(third, LEDGER_HOP, WRONG)[0] == "open"
    assert opened_again(shop) == []


def test_what_ends_between_the_gate_and_the_certificate_is_not_certified(shop: ReconciledShop) -> None:
    shop.certify(wrong_record(shop))
    accepted(shop, WRONG)
    second = shop.judge_and_ask_the_gate()
    assert gate(shop, second) is GateAnswer.PASS
    shop.sql("update warehouse set amount = 777 where id = %s", WRONG)

    assert opened_again(shop) == []  # this window is at work: its own end says it
    closed = shop.certify(second)

    assert (closed.state, closed.reason) == (
        WindowState.GAPS,
        f"what was accepted when the gate was asked is open again since ({LEDGER_HOP}: 1 mismatched); accept it again, "
        "or run the window again",
    )
    assert [one.revokes for one in closed.revoked] == [1]
    (again,) = opened_again(shop)
    assert again.closed.state is WindowState.GAPS


def test_what_is_accepted_is_not_repaired_and_a_later_window_that_meets_the_key_opens_it(shop: ReconciledShop) -> None:
    shop.describe(compensation={"missing": "upsert", "limits": "{share: 1.0}"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    shop.whole_way()
    _, closed = accepted(shop, "O4")
    assert closed.state is WindowState.GAPS
    assert closed.reason is not None
    assert "1 key missing beside 1 accepted, 0 allowed" in closed.reason

    second = shop.judge_and_ask_the_gate()
    plan = plan_window(second).plan
    assert plan is not None
    compensate_window(second, lambda _: None)
    verify_window(second, lambda *_: None, patience_seconds=0.0)
    closed = shop.certify(second)

    assert plan.counts == {"upsert": 1}
    assert shop.sql("select id from warehouse where id in ('O4', 'O5')") == [("O5",)]
    assert closed.certificate is not None
    assert (closed.state, closed.certificate.accepted) == (WindowState.CERTIFIED, 1)

    # The same event once more, with another value: on this hop the next window finds it wrong.
    moved = {**made[4], "amount": "9.00", "at": orders([30], day=1)[0]["at"]}
    (again,) = next_window(shop, [moved], sends=[moved])
    assert list(again.again.reasons) == ["window 2 met the key again: missing"]
    assert (again.closed.state, shop.outcome_of(second, STORE_HOP, "O4")[0]) == (WindowState.GAPS, "open")


def test_a_window_that_is_not_known_says_what_cannot_be_accepted(shop: ReconciledShop) -> None:
    shop.describe(compensation=OBSERVE)
    made = orders(range(10))
    shop.trade(made[:8])
    shop.write("outbox", made[8:])
    send_raw(shop, [(order["id"], wrapped(order), order) for order in made[8:]])
    context, closed = shop.whole_way()
    assert (closed.state, shop.found(context, LEDGER_HOP)["O9"][0]) == (WindowState.NOT_KNOWN, "undecidable")

    for names in (["O9"], []):
        with pytest.raises(RefusedError) as refused:
            asked(shop, *names)
        assert str(refused.value) == (
            f"shop window 1 (revision 1): nothing was accepted. {'1 finding' if names else '2 findings'} cannot be "
            "accepted: undecidable (unreadable_record): what is not known cannot be accepted, only what is known to be "
            "wrong"
        )


def task_of(shop: ReconciledShop, word: Acceptance, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The context of the task that asks another person."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", shop.journal)
    shown = {"acceptance": word.id, "sha256": word.sha256, "subject": "Accept", "body": "1 finding"}
    return {
        "ti": SimpleNamespace(xcom_pull=lambda **_: shown),
        "params": {"pipeline": "shop"},
        "dag_run": SimpleNamespace(run_id="manual"),
    }


def approval_by(person: str) -> dict[str, Any]:
    user = {"id": person, "name": person}
    return {"chosen_options": ["Approve"], "responded_by_user": user, "responded_at": datetime.now(UTC)}


def context_hash(shop: ReconciledShop, context: WindowContext, key: str) -> str:
    rows = shop.journal_sql("select key_hash from makewhole.finding where number = %s and key = %s", 1, key)
    return str(rows[0][0])


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "300"})


def found_text() -> str:
    return " ".join(invoke("findings", "shop").stdout.split())


def wrong_record(shop: ReconciledShop, *, is_described: bool = False) -> WindowContext:
    """Take the first window to its gate; the topic holds a record that differs from the ledger, and the store agrees
    with the topic."""
    if not is_described:
        shop.describe(compensation=OBSERVE)
    made = orders(range(10))
    shop.write("outbox", made)
    wrong = [{**one, "amount": "99.00"} if one["id"] == WRONG else one for one in made]
    shop.send(wrong)
    shop.write("warehouse", wrong)
    context = shop.judge_and_ask_the_gate()
    assert gate(shop, context) is GateAnswer.FAIL
    return context


def next_window(
    shop: ReconciledShop, written: Sequence[Order] = (), *, sends: Sequence[Order] = ()
) -> list[OpenedWindowAgain]:
    """Take the second window to its end, as a run does: what does not hold is opened again before it is certified."""
    shop.trade(orders(range(20, 25), day=1))
    shop.write("outbox", written)
    shop.send(sends)
    context = shop.judge_and_ask_the_gate(1)
    again = opened_again(shop)
    shop.certify(context)
    return again


def gate(shop: ReconciledShop, context: WindowContext) -> GateAnswer:
    rows = shop.journal_sql(
        "select answer from makewhole.gate_report where number = %s and revision = %s order by stage desc limit 1",
        context.window.number,
        context.window.revision,
    )
    return GateAnswer(rows[0][0])


def newest(shop: ReconciledShop) -> list[Window]:
    with connect(shop.journal) as journal:
        return windows.newest(journal, "shop")[::-1]


def checked(shop: ReconciledShop, context: WindowContext) -> CheckedChain:
    with connect(shop.journal) as journal:
        return check_chain(read_evidence(journal, context.storage, "shop", believed_keys()))
