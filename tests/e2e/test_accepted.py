"""Test an acceptance through Airflow: asked for on the command line, answered by another person, taken back."""

import pytest

from tests.e2e.scenarios.acceptances import WHY, AcceptedByTwo

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_one_person_asks_another_says_yes_and_the_window_is_certified_with_it(accepted: AcceptedByTwo) -> None:
    assert accepted.exit_code == 0
    word, window = accepted.asked["acceptance"], accepted.asked["window"]
    assert (word["state"], word["asked_by"], word["decided_by"], word["reason"]) == ("standing", "admin", "oncall", WHY)
    assert (window["state"], window["accepted"]["findings"], window["certificate"]["accepted"]) == ("certified", 1, 1)
    assert accepted.tasks == dict.fromkeys(("plan", "approve", "accept"), "success") | {"report_watermark": "success"}


def test_who_has_no_right_and_who_asked_are_turned_away(accepted: AcceptedByTwo) -> None:
    assert accepted.viewer.returncode == 4
    assert "viewer may not accept anything: Airflow does not let them start the DAG makewhole_accept" in " ".join(
        accepted.viewer.stderr.split()
    )
    assert accepted.own_answer.returncode == 4
    assert "admin may not answer for acceptance" in accepted.own_answer.stderr


def test_a_revocation_opens_the_window_again_and_nothing_was_written_anywhere(accepted: AcceptedByTwo) -> None:
    window = accepted.revoked["window"]
    assert (accepted.exit_code_of_revocation, accepted.revoked["acceptance"]["state"]) == (1, "revoked")
    assert (window["state"], window["certificate"]["revoked_by"] is not None) == ("gaps", True)
    assert window["reason"].startswith(
        f"acceptance {accepted.revoked['acceptance']['id']} was revoked by oncall (it was"
    )
    assert accepted.after == accepted.before


def test_consumers_see_the_certificate_and_then_its_revocation_at_the_assets(accepted: AcceptedByTwo) -> None:
    (certified,), (revoked,) = accepted.certified_events, accepted.revoked_events
    assert (certified["window"], certified["verified_window"], certified["head"]) == (1, 1, 1)
    assert certified["verified_until"] == certified["end"]
    assert [revocation["revokes"] for revocation in revoked["revoked"]] == [certified["ordinal"]]
    assert (revoked["verified_window"], revoked["verified_until"], revoked["since"]) == (None, None, certified["start"])
    assert revoked["head"] > certified["head"]
