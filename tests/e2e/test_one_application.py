"""Test that the Spark steps of a window share an application, and that each is still a task of its own."""

import pytest

from tests.e2e.scenarios.one_application import SPARK_STEPS, Joined, Killed
from tests.e2e.scenarios.pipeline_files import ORDERS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SUBMITTED = "Spark-Submit cmd"
NOTHING_SUBMITTED = "this is committed, nothing was submitted"


def hops(label: str, keys: int) -> str:
    first, other = (f"{hop}: {keys} of {keys} matched, 0 pending" for hop in ("outbox→orders", "orders→warehouse"))
    return f"{label}: {first}; {other}"


def test_one_application_takes_a_window_to_the_gates_answer(joined: Joined) -> None:
    whole = joined.whole
    assert whole.states == dict.fromkeys(SPARK_STEPS, "success")
    assert [SUBMITTED in whole.logs[step] for step in SPARK_STEPS] == [True, False, False]
    log_text = whole.logs["snapshot"]
    label = "joined window 1 (revision 1)"
    for line in (
        f"{label}: snapshots taken: outbox, orders, warehouse",
        f"{label}: snapshot is committed; this application goes on with reconcile",
        hops(label, ORDERS),
        f"{label}: reconcile is committed; this application goes on with validate",
        f"{label}: the gate says PASS",
    ):
        assert line in log_text, log_text


def test_a_task_whose_step_is_committed_says_what_it_found_and_submits_nothing(joined: Joined) -> None:
    logs = joined.whole.logs
    assert hops("joined window 1 (revision 1)", ORDERS) in logs["reconcile"]
    assert "joined window 1 (revision 1): the gate says PASS" in logs["validate"]
    assert all(NOTHING_SUBMITTED in logs[step] for step in ("reconcile", "validate"))
    assert max(joined.whole.seconds[step] for step in ("reconcile", "validate")) < joined.whole.seconds["snapshot"] / 3


def test_a_cleared_validate_asks_the_gate_again(joined: Joined) -> None:
    again = joined.asked_again
    assert (again.tries["snapshot"], again.tries["reconcile"], again.tries["validate"]) == (1, 1, 2)
    assert SUBMITTED in again.logs["validate"]
    assert "joined window 1 (revision 1): the gate says PASS" in again.logs["validate"]
    assert again.window["state"] == "certified"


def test_what_goes_wrong_in_a_later_step_is_red_in_its_own_task(joined: Joined) -> None:
    failed = joined.failed
    assert (failed.states["snapshot"], failed.states["reconcile"]) == ("success", "failed")
    assert "joined window 2 (revision 1): reconcile did not end well here (" in failed.logs["snapshot"]
    assert "the task `reconcile` does it again by itself, and is red if it cannot" in failed.logs["snapshot"]
    assert "ERROR makewhole" not in failed.logs["snapshot"]
    assert "is named by a manifest and is not there" in failed.logs["reconcile"]
    assert "ERROR makewhole" in failed.logs["reconcile"]
    assert (failed.tries["snapshot"], failed.tries["reconcile"], failed.states["validate"]) == (1, 1, "upstream_failed")


def test_the_failed_step_can_be_cleared_and_its_application_goes_on(joined: Joined) -> None:
    mended = joined.mended
    assert [SUBMITTED in mended.logs[step] for step in SPARK_STEPS] == [True, True, False]
    assert (mended.tries["snapshot"], mended.tries["reconcile"], mended.tries["validate"]) == (1, 2, 1)
    assert (mended.window["state"], mended.window["revision"], mended.window["gate"]) == ("certified", 1, "PASS")


def test_an_application_killed_in_any_step_is_continued_by_the_task_of_that_step(killed: Killed) -> None:
    assert killed.jobs == ("snapshot", "snapshot", "reconcile")
    ended = killed.ended
    assert ended.states == dict.fromkeys(SPARK_STEPS, "success")
    assert (ended.tries["snapshot"], ended.tries["reconcile"], ended.tries["validate"]) == (2, 1, 1)
    for step in ("snapshot", "reconcile"):
        assert (
            f"killed window 1 (revision 1): {step} is committed. The application broke while it went on"
            in ended.logs[step]
        )
    assert SUBMITTED in ended.logs["validate"]
    assert (ended.window["state"], ended.window["gate"]) == ("certified", "PASS")
    assert [hop["counts"]["matched"] for hop in ended.window["hops"]] == [ORDERS, ORDERS]
