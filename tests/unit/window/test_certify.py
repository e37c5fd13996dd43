"""Windows are certified, or not, by what is in a journal that is faked at its functions."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.journal.results import handover_keys
from makewhole.journal.results.hop_results import RECONCILED, VERIFIED
from makewhole.journal.step_failures import StepFailure
from makewhole.model.gate import Gate, GateAnswer
from makewhole.model.hops import Remedy
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.window.configuration import judging_sha256
from tests.unit.window.committed_evidence import (
    GAPPY,
    MOMENT,
    PIPELINE,
    WHOLE,
    WINDOW,
    CommittedEvidence,
    decided,
    gate,
)

pytestmark = pytest.mark.unit

CONTINUED = "The next run goes on with this window before its own"


def test_a_window_that_passed_is_certified(committed: CommittedEvidence) -> None:
    assert decided() == (WindowState.CERTIFIED, None)


def test_a_window_that_passed_after_repair_is_certified(committed: CommittedEvidence) -> None:
    committed.results = {RECONCILED: {"a→b": GAPPY, "b→c": WHOLE}, VERIFIED: {"a→b": WHOLE}}
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing"), VERIFIED: gate(GateAnswer.PASS)}

    assert decided() == (WindowState.CERTIFIED, None)


@pytest.mark.parametrize("is_overtaken", [False, True])
def test_keys_in_flight_are_handed_over_only_to_a_window_that_is_given_them(
    committed: CommittedEvidence, monkeypatch: pytest.MonkeyPatch, is_overtaken: bool
) -> None:
    committed.results = {RECONCILED: {"a→b": WHOLE, "b→c": replace(WHOLE, pending=2)}}
    asked: list[Window] = []

    def answer(_: object, window: Window) -> bool:
        asked.append(window)
        return is_overtaken

    monkeypatch.setattr(handover_keys, "is_overtaken", answer)

    state, reason = decided()

    assert asked == [WINDOW]
    if not is_overtaken:
        assert (state, reason) == (WindowState.CERTIFIED, None)
    else:
        assert state is WindowState.NOT_KNOWN
        assert reason is not None and reason.startswith(f"2 keys are still in flight, and window {WINDOW.number + 1},")


@pytest.mark.parametrize("results", [{}, {RECONCILED: {}}, {RECONCILED: {"a→b": WHOLE}}, {VERIFIED: {"a→b": WHOLE}}])
def test_a_comparison_that_did_not_finish_certifies_nothing(
    committed: CommittedEvidence, results: dict[str, Any]
) -> None:
    committed.results = results

    assert decided() == (
        WindowState.ERROR,
        "the comparison did not finish; see the failed task of this run. The next run goes on with this window before "
        "its own, and no later window is compared before it",
    )


def broke(step: str, reason: str) -> StepFailure:
    return StepFailure(
        step=step, dag="makewhole_oncall", run="tonight", is_permanent=True, reason=reason, failed_at=MOMENT
    )


def test_an_error_is_the_cause_of_the_step_that_broke(committed: CommittedEvidence) -> None:
    committed.results = {}
    committed.broken = [broke("snapshot", "connection shop_db: table shop.orders has no column amount.")]

    assert decided() == (
        WindowState.ERROR,
        "snapshot did not end well in run tonight of makewhole_oncall: connection shop_db: table shop.orders has no "
        "column amount. The next run goes on with this window before its own, and no later window is compared before "
        "it",
    )


def test_a_gate_that_broke_before_it_was_asked_gives_the_cause(committed: CommittedEvidence) -> None:
    committed.gates, committed.broken = {}, [broke("validate", "the storage is away")]

    assert decided() == (
        WindowState.ERROR,
        "the gate could not answer: validate did not end well in run tonight of makewhole_oncall: the storage is away. "
        f"{CONTINUED}",
    )


def test_gaps_say_why_their_repair_broke_off(committed: CommittedEvidence) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on a→b")}
    committed.broken = [broke("certify", "no key"), broke("compensate", "topic b is read-only")]

    assert decided() == (
        WindowState.GAPS,
        "1 missing on a→b. The repair broke off: compensate did not end well in run tonight of makewhole_oncall: topic "
        "b is read-only",
    )


def test_a_gate_that_was_not_asked_certifies_nothing(committed: CommittedEvidence) -> None:
    committed.gates = {}

    assert decided() == (
        WindowState.ERROR,
        f"the gate could not answer: it was not asked; see the failed task of this run. {CONTINUED}",
    )


def test_a_gate_that_broke_certifies_nothing_and_a_later_pass_does_not_heal_it(committed: CommittedEvidence) -> None:
    committed.gates = {RECONCILED: gate(GateAnswer.ERROR, "no suite"), VERIFIED: gate(GateAnswer.PASS)}

    assert decided() == (WindowState.ERROR, f"the gate could not answer: no suite. {CONTINUED}")


def test_a_gate_that_broke_after_compensation_certifies_nothing(committed: CommittedEvidence) -> None:
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "x"), VERIFIED: gate(GateAnswer.ERROR, "away")}

    assert decided() == (WindowState.ERROR, f"the gate could not answer after compensation: away. {CONTINUED}")


@pytest.mark.parametrize(
    ("remedy", "state"), [(Remedy.REPORT, WindowState.NOT_KNOWN), (Remedy.UPSERT, WindowState.GAPS)]
)
def test_what_has_vanished_is_a_gap_only_where_it_is_to_be_brought_back(
    committed: CommittedEvidence, remedy: Remedy, state: WindowState
) -> None:
    committed.results[RECONCILED]["b→c"] = HopCounts(source_keys=5, matched=4, vanished=1)
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "x")}
    hop = replace(PIPELINE.hops[1], remedies=replace(PIPELINE.hops[1].remedies, vanished=remedy))

    assert decided(replace(PIPELINE, hops=(PIPELINE.hops[0], hop)))[0] is state


def test_gaps_that_were_not_mended_stay_gaps(committed: CommittedEvidence) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on a→b")}

    assert decided() == (WindowState.GAPS, "1 missing on a→b")


def test_gaps_of_which_only_refused_ones_are_left_that_nothing_can_decide_are_not_known(
    committed: CommittedEvidence,
) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on a→b")}
    committed.refused_as_unread = 1

    assert decided()[0] is WindowState.NOT_KNOWN


def test_a_pass_before_is_not_worth_more_than_a_fail_after(committed: CommittedEvidence) -> None:
    committed.results[VERIFIED] = {"b→c": GAPPY}
    committed.gates[VERIFIED] = gate(GateAnswer.FAIL, "1 missing on b→c")

    assert decided() == (WindowState.GAPS, "1 missing on b→c")


def test_a_failure_without_gaps_is_not_known(committed: CommittedEvidence) -> None:
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "a is empty")}

    assert decided() == (WindowState.NOT_KNOWN, "not proven: a is empty")


@pytest.mark.parametrize("state", ["refused", "rejected"])
def test_gaps_say_what_became_of_the_plan(committed: CommittedEvidence, state: str) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing")}
    committed.plan = SimpleNamespace(plan=SimpleNamespace(reason="too many", state=SimpleNamespace(value=state)))
    committed.is_plan_only = True

    assert decided() == (
        WindowState.GAPS,
        f"1 missing. The plan was {state}: too many. Only a plan was asked for",
    )


@pytest.mark.parametrize(
    ("state", "is_plan_only", "is_known", "said"),
    [
        (
            "running",
            False,
            False,
            ". The repair broke off: plan p was not ended, and its task left no reason, as when it is killed",
        ),
        (
            "approved",
            False,
            False,
            ". The repair broke off: plan p was not ended, and its task left no reason, as when it is killed",
        ),
        ("approved", True, False, ". Only a plan was asked for"),
        ("done", False, False, ""),
        (
            "running",
            False,
            True,
            ". The repair broke off: compensate did not end well in run tonight of "
            "makewhole_oncall: topic b is read-only",
        ),
    ],
)
def test_gaps_say_that_the_task_of_their_plan_was_killed(
    committed: CommittedEvidence, state: str, is_plan_only: bool, is_known: bool, said: str
) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing")}
    plan = SimpleNamespace(id="p", reason=None, state=SimpleNamespace(value=state))
    committed.plan, committed.is_plan_only = SimpleNamespace(plan=plan), is_plan_only
    committed.broken = [broke("compensate", "topic b is read-only")] if is_known else []

    assert decided() == (WindowState.GAPS, f"1 missing{said}")


# What else stands against a certificate


def test_a_file_that_was_changed_while_the_window_was_judged_proves_nothing(committed: CommittedEvidence) -> None:
    tolerant = replace(PIPELINE, gate=Gate(missing=1_000))
    committed.manifests = {
        "a": {"judging_sha256": judging_sha256(PIPELINE)},
        "b": {"judging_sha256": judging_sha256(tolerant)},
        "c": {},  # taken by a version that did not note it
    }

    assert decided() == (
        WindowState.NOT_KNOWN,
        "what decides a verdict was changed in the file of demo while the window was judged: it was another one at "
        "snapshot of b. Run the window again",
    )


def test_a_revision_that_a_later_one_refuted_is_not_certified(committed: CommittedEvidence) -> None:
    committed.later_gaps = 3

    state, reason = decided()

    assert state is WindowState.NOT_KNOWN
    assert reason is not None and reason.startswith("revision 3 of this window was judged later and ended with gaps")


def test_a_revision_that_may_have_compared_rows_which_an_undo_took_back_is_not_certified(
    committed: CommittedEvidence,
) -> None:
    committed.undone_by = "demo-1-abc"

    assert decided() == (
        WindowState.NOT_KNOWN,
        "plan demo-1-abc took back rows of this window after this revision was opened, which may have compared them; "
        "run the window again",
    )


# What a person has accepted


def test_a_window_that_passes_with_what_is_accepted_is_certified(committed: CommittedEvidence) -> None:
    committed.results = {RECONCILED: {"a→b": GAPPY, "b→c": WHOLE}}
    committed.accepted = {"a→b": {"missing": 1}}
    committed.gates = {RECONCILED: gate(GateAnswer.PASS).asked_with(committed.accepted)}

    assert decided() == (WindowState.CERTIFIED, None)


def test_what_was_accepted_and_is_open_again_since_the_gate_was_asked_is_a_gap(committed: CommittedEvidence) -> None:
    committed.results = {RECONCILED: {"a→b": GAPPY, "b→c": WHOLE}}
    committed.gates = {RECONCILED: gate(GateAnswer.PASS).asked_with({"a→b": {"missing": 1}})}

    assert decided() == (
        WindowState.GAPS,
        "what was accepted when the gate was asked is open again since (a→b: 1 missing); accept it again, or run the "
        "window again",
    )


def test_a_window_of_which_all_gaps_are_accepted_and_that_does_not_pass_is_not_known(
    committed: CommittedEvidence,
) -> None:
    committed.results = {RECONCILED: {"a→b": GAPPY, "b→c": WHOLE}}
    committed.accepted = {"a→b": {"missing": 1}}
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "2 undecidable")}

    assert decided() == (WindowState.NOT_KNOWN, "not proven: 2 undecidable")
