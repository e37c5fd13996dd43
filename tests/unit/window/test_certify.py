"""Windows are certified, or not, by what is in a journal that is faked at its functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole.journal import acceptances, certificates, incidents, plans, windows
from makewhole.journal.findings import window_findings
from makewhole.journal.results import gate_answers, hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import RECONCILED, VERIFIED, HopResult
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Gate, Hop, Pipeline, Reach, Remedies, Remedy
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection
from makewhole.window.certify import decide
from makewhole.window.configuration import judging_sha256

pytestmark = pytest.mark.unit

CONTINUED = "The next run goes on with this window before its own"

REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PIPELINE = Pipeline(
    name="demo",
    points={},
    hops=(Hop(source="a", target="b", remedies=REMEDIES), Hop(source="b", target="c", remedies=REMEDIES)),
)
MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
WINDOW = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
WHOLE = HopCounts(source_keys=5, matched=5)
GAPPY = HopCounts(source_keys=5, matched=4, missing=1)


@dataclass
class CommittedEvidence:
    """The evidence that the steps committed."""

    results: dict[str, dict[str, HopCounts]] = field(default_factory=dict)
    gates: dict[str, GateReport] = field(default_factory=dict)
    plan: Any = None
    is_plan_only: bool = False
    incidents: list[Incident] = field(default_factory=list)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    later_gaps: int | None = None
    undone_by: str | None = None
    accepted: dict[str, dict[str, int]] = field(default_factory=dict)
    refused_as_unread: int = 0


def gate(answer: GateAnswer, *failures: str) -> GateReport:
    return GateReport(answer=answer, planned=3, evaluated=3, failures=failures)


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> CommittedEvidence:
    state = CommittedEvidence(
        results={RECONCILED: {"a→b": WHOLE, "b→c": WHOLE}}, gates={RECONCILED: gate(GateAnswer.PASS)}
    )

    def results(journal: PgConnection, window: Window, stage: str = RECONCILED) -> Mapping[str, HopResult]:
        of_stage = state.results.get(stage, {})
        return {hop: HopResult(hop=hop, counts=counts, digest="0") for hop, counts in of_stage.items()}

    monkeypatch.setattr(hop_results, "results", results)
    monkeypatch.setattr(gate_answers, "gate_reports", lambda *_: state.gates)
    monkeypatch.setattr(incidents, "of", lambda *_: state.incidents)
    monkeypatch.setattr(plans, "plan_of_window", lambda *_: state.plan)
    monkeypatch.setattr(windows, "is_plan_only", lambda *_: state.is_plan_only)
    monkeypatch.setattr(windows, "configuration", lambda *_: {"judging_sha256": judging_sha256(PIPELINE)})
    monkeypatch.setattr(snapshot_manifests, "snapshots", lambda *_: state.manifests)
    monkeypatch.setattr(certificates, "gaps_after", lambda *_: state.later_gaps)
    monkeypatch.setattr(plans, "undone_since", lambda *_: state.undone_by)
    monkeypatch.setattr(acceptances, "count_accepted", lambda *_: state.accepted)
    monkeypatch.setattr(window_findings, "count_refused_by", lambda *_: state.refused_as_unread)
    return state


def decided(pipeline: Pipeline = PIPELINE) -> tuple[WindowState, str | None]:
    return decide(cast(PgConnection, None), pipeline, WINDOW)


def test_a_window_that_passed_is_certified(committed: CommittedEvidence) -> None:
    assert decided() == (WindowState.CERTIFIED, None)


def test_a_window_that_passed_after_repair_is_certified(committed: CommittedEvidence) -> None:
    committed.results = {RECONCILED: {"a→b": GAPPY, "b→c": WHOLE}, VERIFIED: {"a→b": WHOLE}}
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing"), VERIFIED: gate(GateAnswer.PASS)}

    assert decided() == (WindowState.CERTIFIED, None)


@pytest.mark.parametrize("is_judged", [False, True])
def test_keys_in_flight_are_handed_over_only_to_a_window_that_is_yet_to_be_judged(
    committed: CommittedEvidence, monkeypatch: pytest.MonkeyPatch, is_judged: bool
) -> None:
    committed.results = {RECONCILED: {"a→b": WHOLE, "b→c": replace(WHOLE, pending=2)}}
    numbers: list[int] = []

    def is_reconciled(_: object, __: object, number: int) -> bool:
        numbers.append(number)
        return is_judged

    monkeypatch.setattr(windows, "is_reconciled", is_reconciled)

    state, reason = decided()

    assert numbers == [WINDOW.number + 1]
    if not is_judged:
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
    hop = replace(PIPELINE.hops[1], remedies=replace(REMEDIES, vanished=remedy))

    assert decided(replace(PIPELINE, hops=(PIPELINE.hops[0], hop)))[0] is state


def test_gaps_that_nobody_mended_stay_gaps(committed: CommittedEvidence) -> None:
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on a→b")}

    assert decided() == (WindowState.GAPS, "1 missing on a→b")


def test_gaps_of_which_only_refused_ones_are_left_that_nothing_can_tell_are_not_known(
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


# Incidents

EXPIRED = Incident(
    kind=IncidentKind.EXPIRED,
    point="b",
    topic="orders",
    topic_id="id1",
    partition=0,
    lo=0,
    hi=4,
    detail={"before_it_was_read": True},
)


def test_a_partial_window_is_never_certified_and_says_what_is_missing_and_what_would_settle_it(
    committed: CommittedEvidence,
) -> None:
    committed.incidents = [EXPIRED]

    assert decided() == (
        WindowState.NOT_KNOWN,
        "partial: 4 offsets of orders/0 ([0, 4)) were deleted before they could be read. What they held is not known: "
        "a mirror or a backup of the topic can tell, and the keys in doubt that another place names are in "
        "`makewhole findings`. A longer "
        "retention, or windows that run sooner after their end, prevent it",
    )


def test_gaps_of_a_partial_window_are_told_with_it(committed: CommittedEvidence) -> None:
    committed.incidents = [EXPIRED, replace(EXPIRED, partition=1)]
    committed.results[RECONCILED]["a→b"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on a→b")}

    state, reason = decided()

    assert state is WindowState.NOT_KNOWN
    assert reason is not None
    assert "4 offsets of orders/0 ([0, 4)) were" in reason and "; 4 offsets of orders/1 ([0, 4)) were" in reason
    assert reason.count("A longer retention") == 1
    assert reason.endswith(". Certain all the same: a→b: 1 missing")


@pytest.mark.parametrize("kind", [IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED])
def test_what_had_been_read_and_is_gone_is_proven_only_where_something_upstream_says_what_must_be_there(
    committed: CommittedEvidence, kind: IncidentKind
) -> None:
    gone = replace(EXPIRED, kind=kind, detail={"before_it_was_read": False})
    committed.incidents = [gone]
    assert decided() == (WindowState.CERTIFIED, None)

    committed.incidents = [replace(gone, point="a")]
    state, reason = decided()
    assert state is WindowState.NOT_KNOWN
    assert reason is not None and reason.startswith("not proven: ")
    assert "No point of this pipeline feeds the topic, so nothing says what must be in it" in reason


def test_a_hanging_transaction_is_not_known_and_its_remedy_is_the_command(committed: CommittedEvidence) -> None:
    committed.incidents = [replace(EXPIRED, kind=IncidentKind.HANGING_TRANSACTION, detail={"producer_id": 7})]

    assert decided() == (
        WindowState.NOT_KNOWN,
        "not proven: a transaction of producer 7 is open in orders/0 since offset 0, where the window has to end, and "
        "it hangs: no coordinator will ever end it. End it with `kafka-transactions.sh abort --topic orders "
        "--partition 0 --start-offset 0`, then run this window again",
    )


@pytest.mark.parametrize(
    "kind", [IncidentKind.OPEN_TRANSACTION, IncidentKind.LEADER_CHANGED, IncidentKind.PARTITIONS_ADDED]
)
def test_what_the_window_is_judged_with_all_the_same_stops_nothing(
    committed: CommittedEvidence, kind: IncidentKind
) -> None:
    committed.incidents = [replace(EXPIRED, kind=kind, detail={})]

    assert decided() == (WindowState.CERTIFIED, None)


def leader_changed(point: str, **detail: Any) -> Incident:
    return replace(
        EXPIRED, kind=IncidentKind.LEADER_CHANGED, point=point, detail={"epochs": [[0, 2], [1, 4]], **detail}
    )


DOUBTS = {"few_copies": 1, "unclean_election": 1, "settings_unknown": 1, "acks_unknown": 1, "numbers_missing": 2}


@pytest.mark.parametrize("point", ["a", "b"])
def test_a_change_of_leader_that_may_have_lost_something_blocks_only_where_nothing_upstream_can_tell(
    committed: CommittedEvidence, point: str
) -> None:
    committed.incidents = [leader_changed(point, doubts=DOUBTS)]

    state, reason = decided()

    if point == "b":
        assert (state, reason) == (WindowState.CERTIFIED, None)
        return
    assert state is WindowState.NOT_KNOWN
    assert reason is not None and reason.startswith(
        "not proven: the leader of orders/0 changed: leader epochs 0, 1, and it may have taken acknowledged records "
        "along: one replica alone may acknowledge a record (min.insync.replicas, replication factor), a replica that "
        "lags may lead (unclean.leader.election.enable=true), the settings of the topic may not be read, 1 record of "
        "the window without a producer id, whose acks are not known, the numbering of its producers has 2 gaps. No "
        "point of this pipeline feeds the topic"
    )


def test_gaps_that_are_certain_are_gaps_whatever_else_may_have_gone_with_a_leader(committed: CommittedEvidence) -> None:
    committed.incidents = [leader_changed("a", doubts=DOUBTS)]
    committed.results[RECONCILED]["b→c"] = GAPPY
    committed.gates = {RECONCILED: gate(GateAnswer.FAIL, "1 missing on b→c")}
    assert decided() == (WindowState.GAPS, "1 missing on b→c")

    committed.gates[VERIFIED] = gate(GateAnswer.PASS)
    assert decided()[0] is WindowState.NOT_KNOWN


def test_a_change_of_leader_that_was_looked_into_and_is_harmless_stops_nothing(committed: CommittedEvidence) -> None:
    committed.incidents = [leader_changed("a", doubts={})]

    assert decided() == (WindowState.CERTIFIED, None)


def test_a_change_of_leader_that_nobody_looked_into_is_not_taken_for_harmless(committed: CommittedEvidence) -> None:
    committed.incidents = [leader_changed("a")]

    assert decided()[0] is WindowState.NOT_KNOWN


def test_a_file_that_accepts_the_log_is_judged_by_it(
    committed: CommittedEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepting = replace(PIPELINE, reach=Reach.LOG)
    assert judging_sha256(accepting) != judging_sha256(PIPELINE)
    committed.incidents = [leader_changed("a", doubts=DOUBTS)]
    monkeypatch.setattr(windows, "configuration", lambda *_: {"judging_sha256": judging_sha256(accepting)})

    assert decide(cast(PgConnection, None), accepting, WINDOW) == (WindowState.CERTIFIED, None)


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
