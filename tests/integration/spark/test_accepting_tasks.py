"""Test the tasks of `makewhole_accept` on a whole window: what the form asks for, carried out, and taken back."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from makewhole.compute.keys import key_hash
from makewhole.model.acceptance import AcceptanceState, finding_id
from makewhole.orchestration.steps import accepting
from tests.world.acceptances import stored
from tests.world.accepted_windows import OBSERVE, WRONG, wrong_record
from tests.world.shop import LEDGER_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FORM: dict[str, Any] = {
    "pipeline": "shop",
    "window": 1,
    "findings": [finding_id(LEDGER_HOP, key_hash(WRONG))],
    "cause": None,
    "all": False,
    "until": None,
}
FORM |= {"reason": "it cannot be changed", "revoke": None}


def test_the_tasks_ask_once_carry_out_and_take_back(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = wrong_record(shop)
    shop.certify(first)
    pushed = in_a_run(monkeypatch, FORM)

    assert (accepting.plan(), accepting.plan()) == ("accept", "accept")
    result = accepting.accept()
    again = accepting.accept()

    assert shop.journal_sql("select count(*) from makewhole.acceptance") == [(1,)]
    assert (result["state"], result["accepted"], again["certificate"]) == ("certified", 1, result["certificate"])
    assert pushed["acceptance"] == result["acceptance"]
    assert shop.outcome_of(first, LEDGER_HOP, WRONG) == ("accepted", "by anna: it cannot be changed")

    in_a_run(monkeypatch, FORM | {"revoke": result["acceptance"], "reason": "it was changed"}, run="another")
    assert accepting.plan() == "accept"
    assert accepting.accept()["state"] == "gaps"
    assert shop.outcome_of(first, LEDGER_HOP, WRONG)[0] == "open"


def test_a_form_that_cannot_be_intended_fails_the_task_with_what_to_write(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: dict[str, dict[str, Any]] = {
        "the form names no window": {"window": None},
        "name what is accepted in one way": {"all": True},
        "by their ids, as .* a key would stay in it when it is erased": {"findings": [WRONG]},
        "magic is no cause; there are aborted_transaction, ": {"findings": None, "cause": "magic"},
        "shop has no window 1; there are 0": {},
        "there is no acceptance nothing; `makewhole accept PIPELINE` lists": {"revoke": "nothing"},
    }
    for message, changed in refused.items():
        in_a_run(monkeypatch, FORM | changed)
        with pytest.raises(AirflowFailException, match=message):
            accepting.plan()
    in_a_run(monkeypatch, FORM, user=None)
    with pytest.raises(AirflowFailException, match="Airflow does not say who started this run"):
        accepting.plan()


def test_another_pipeline_cannot_take_an_acceptance_back(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.describe(compensation=OBSERVE | {"approval": "{above_actions: 0}"})
    shop.certify(wrong_record(shop, is_described=True))
    in_a_run(monkeypatch, FORM)
    assert accepting.plan() == "approve"
    ((word,),) = shop.journal_sql("select id from makewhole.acceptance")
    in_a_run(monkeypatch, FORM | {"revoke": word}, run="another")
    other = replace(shop.pipeline, name="other")
    monkeypatch.setattr(accepting, "load_own_pipeline", lambda _: other)

    with pytest.raises(AirflowFailException, match=f"acceptance {word} is of shop, not of other"):
        accepting.plan()

    assert stored(shop, SimpleNamespace(id=word)).state is AcceptanceState.AWAITING_APPROVAL  # type: ignore[arg-type]


def in_a_run(
    monkeypatch: pytest.MonkeyPatch, form: Mapping[str, Any], *, run: str = "manual", user: str | None = "anna"
) -> dict[str, Any]:
    """Have the tasks find the form of a run; return what the first of them pushes for the page."""
    pushed: dict[str, Any] = {}
    context = {
        "params": form,
        "dag_run": SimpleNamespace(run_id=run, triggering_user_name=user),
        "ti": SimpleNamespace(dag_id="makewhole_accept", xcom_push=lambda **of: pushed.update(of["value"])),
    }
    monkeypatch.setattr(accepting, "get_current_context", lambda: context)
    return pushed
