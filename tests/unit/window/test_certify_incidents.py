"""Windows are certified, or not, by the incidents in a journal that is faked at its functions."""

from dataclasses import replace
from typing import Any, cast

import pytest

from makewhole.journal import windows
from makewhole.journal.results.hop_results import RECONCILED, VERIFIED
from makewhole.model.gate import GateAnswer
from makewhole.model.hops import Reach
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.sql import PgConnection
from makewhole.window.certifying.certify import decide
from makewhole.window.configuration import judging_sha256
from tests.unit.window.committed_evidence import GAPPY, PIPELINE, WINDOW, CommittedEvidence, decided, gate

pytestmark = pytest.mark.unit

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
        "a mirror or a backup of the topic can show it, and the keys in doubt that another place names are in "
        "`makewhole findings`. A longer "
        "retention, or windows that run sooner after their end, prevent it",
    )


def test_gaps_of_a_partial_window_are_reported_with_it(committed: CommittedEvidence) -> None:
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
def test_a_change_of_leader_that_may_have_lost_something_blocks_only_where_nothing_upstream_can_show_it(
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


def test_a_change_of_leader_that_was_not_looked_into_is_not_taken_for_harmless(committed: CommittedEvidence) -> None:
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
