"""Test a person's word on whole windows: findings that stay as they are, the certificate that counts them, and what
opens them again."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import RefusedError
from makewhole.model.gate import GateAnswer
from makewhole.model.window import WindowState
from tests.world.acceptances import accepted, opened_again, revoked
from tests.world.accepted_windows import (
    OBSERVE,
    WRONG,
    checked,
    found_text,
    gate,
    invoke,
    newest,
    next_window,
    wrong_record,
)
from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


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
    assert [(window.number, window.state) for window in newest(shop)] == [(1, WindowState.GAPS), (2, WindowState.GAPS)]
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
    assert [window.state for window in newest(shop)] == [WindowState.CERTIFIED]

    shop.journal_sql("update makewhole.acceptance set until = now() - interval '1 second'")
    (again,) = opened_again(shop)
    assert again.closed.state is not WindowState.CERTIFIED, "it cannot be judged again by this file, and is open"
    assert len(again.closed.revoked) == 1
    assert opened_again(shop) == []


@pytest.mark.extended
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

    assert (closed.state, [revocation.revokes for revocation in closed.revoked]) == (WindowState.GAPS, [1, 2])
    assert shop.outcome_of(third, LEDGER_HOP, WRONG)[0] == "open"
    assert opened_again(shop) == []


@pytest.mark.extended
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
    assert [revocation.revokes for revocation in closed.revoked] == [1]
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
