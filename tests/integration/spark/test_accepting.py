"""Test which findings a person may accept, and who has to agree."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from makewhole.compensation.approval.answer import Decision
from makewhole.journal import acceptances
from makewhole.journal.database import connect
from makewhole.model.acceptance import Acceptance, AcceptanceState, finding_id
from makewhole.model.errors import RefusedError
from makewhole.model.verdict import Cause
from makewhole.model.window import WindowState
from makewhole.orchestration import acceptance_answers
from makewhole.orchestration.task_ids import ACCEPT_DAG
from tests.integration.spark.test_unreadable_records import send_raw, wrapped
from tests.world.acceptances import answered, asked, carried_out, revoked, stored
from tests.world.accepted_windows import OBSERVE, WRONG, context_hash, wrong_record
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_what_cannot_be_accepted_says_why(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.describe(compensation=OBSERVE)
    shop.write("outbox", made)
    shop.send([{**order, "amount": "99.00"} if order["id"] == WRONG else order for order in made])
    shop.write("warehouse", [{**order, "amount": "99.00"} if order["id"] == WRONG else order for order in made[:9]])
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
        "ti": SimpleNamespace(dag_id=ACCEPT_DAG, xcom_pull=lambda **_: shown),
        "params": {"pipeline": "shop"},
        "dag_run": SimpleNamespace(run_id="manual"),
    }


def approval_by(person: str) -> dict[str, Any]:
    user = {"id": person, "name": person}
    return {"chosen_options": ["Approve"], "responded_by_user": user, "responded_at": datetime.now(UTC)}
