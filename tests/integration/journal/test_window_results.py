"""Test that what the steps commit comes back as it was, whatever records contain."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

import pytest

from makewhole.journal import statements, windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results import gate_answers, handover_keys, hop_results, snapshot_manifests
from makewhole.journal.results.handover_keys import Handover
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.gate import GateAnswer, GateReport
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Window

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 2, tzinfo=UTC)


@pytest.fixture
def window(journal: str) -> Window:
    opened = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
    with connect(journal) as session:
        windows.insert(session, opened, request="run", plan_only=False, configuration={})
    return opened


HOSTILE = ["a'b", 'a"b', "a\\b", "a\nb", "a,b", "%s", "{}", "\u202e", "🙂", "k" * 3_000, "=cmd()"]


def found(key: str, number: int) -> Finding:
    return Finding(
        hop="a→b",
        key=key,
        key_hash=f"{number:032x}",
        verdict=Verdict.MISSING,
        cause=Cause.NEVER_PRODUCED,
        evidence={"values": {"text": key, "none": None}, "source": [{"place": "0:1"}]},
    )


def test_findings_come_back_with_hostile_keys_and_values(journal: str, window: Window) -> None:
    wanted = [found(key, number) for number, key in enumerate(HOSTILE)]
    with connect(journal) as session:
        assert window_findings.commit_findings(session, window, wanted) == len(wanted)

    with connect(journal) as session:
        back = {item.finding.key_hash: item.finding for item in window_findings.findings(session, window)}

    assert back == {finding.key_hash: finding for finding in wanted}


def test_of_the_open_findings_of_each_hop_and_verdict_the_first_come_back(journal: str, window: Window) -> None:
    """Leave out those that were not known, that are whole, or that are of another verdict."""
    missing = [found(f"k{number}", number) for number in range(5)]
    other = [replace(finding, hop="b→c", key_hash=f"1{finding.key_hash[1:]}") for finding in missing[:3]]
    pending = replace(found("p", 100), verdict=Verdict.PENDING)
    with connect(journal) as session:
        window_findings.commit_findings(session, window, [*missing[::-1], *other, pending])
        window_findings.set_outcomes(session, window, [JudgedFinding(finding=missing[0], outcome="repaired")])

        back = window_findings.open_findings(session, window, ("missing", "duplicate"), 2)
        kept = window_findings.count_open(session, window)
        counts = {"a→b": HopCounts(missing=1_000_000, duplicate=3), "b→c": HopCounts(missing=3)}
        made = [HopResult(hop=hop, counts=count, digest="0", files={}) for hop, count in counts.items()]
        hop_results.commit_results(session, window, hop_results.RECONCILED, made)
        counted = window_findings.count_open(session, window)

    assert [(finding.hop, finding.key) for finding in back] == [
        ("a→b", "k1"),
        ("a→b", "k2"),
        ("b→c", "k0"),
        ("b→c", "k1"),
    ]
    assert back[0] == missing[1]
    assert kept == {("a→b", "missing"): 4, ("a→b", "pending"): 1, ("b→c", "missing"): 3}
    assert {place: left for place, left in counted.items() if left} == {
        ("a→b", "missing"): 999_999,
        ("a→b", "duplicate"): 3,
        ("a→b", "pending"): 1,
        ("b→c", "missing"): 3,
    }


def test_findings_that_the_journal_did_not_take_are_counted_by_verdict(journal: str, window: Window) -> None:
    """Leave those that verify adds out: no result of reconcile counts them, and they stand for none that is missing."""
    missing = [found(f"k{number}", number) for number in range(3)]
    repeated = replace(found("d", 10), verdict=Verdict.DUPLICATE)
    doubled = replace(found("e", 11), verdict=Verdict.DUPLICATE, evidence={"caused_by": "demo-1"})
    counts = {
        "a→b": HopCounts(matched=8, missing=5, duplicate=2, pending=4, before_baseline=9),
        "b→c": HopCounts(missing=1, extra_copies=3),
    }
    made = [HopResult(hop=hop, counts=count, digest="0", files={}) for hop, count in counts.items()]
    with connect(journal) as session:
        assert window_findings.count_left_out(session, window) == {}
        hop_results.commit_results(session, window, hop_results.RECONCILED, made)
        window_findings.commit_findings(session, window, [*missing, repeated])
        window_findings.add_findings(session, window, [doubled])

        left = window_findings.count_left_out(session, window)
        is_open = window_findings.count_open(session, window)

        window_findings.commit_findings(session, window, [])
        nothing_kept = window_findings.count_left_out(session, window)

    a, b = "a→b", "b→c"
    assert left == {
        (a, Verdict.MISSING): 2,
        (a, Verdict.DUPLICATE): 1,
        (a, Verdict.PENDING): 4,
        (b, Verdict.MISSING): 1,
    }
    assert (is_open["a→b", "missing"], is_open["a→b", "duplicate"], is_open["b→c", "missing"]) == (5, 3, 1)
    lost = {(a, Verdict.MISSING): 5, (b, Verdict.MISSING): 1}
    assert nothing_kept == {**lost, (a, Verdict.DUPLICATE): 2, (a, Verdict.PENDING): 4}


def test_a_nul_inside_a_value_stops_nothing(journal: str, window: Window) -> None:
    with connect(journal) as session:
        window_findings.commit_findings(session, window, [found("a\x00b", 1)])
        handover_keys.commit_handovers(
            session, window, [Handover(hop="a→b", key="a\x00b", key_hash="1" * 32, since=MOMENT)]
        )
        (item,) = window_findings.findings(session, window)

    assert item.finding.key == "a\\u0000b"
    assert item.finding.evidence["values"] == {"text": "a\\u0000b", "none": None}


def test_what_is_committed_again_replaces_what_was_there(journal: str, window: Window) -> None:
    with connect(journal) as session:
        for keys in (["a", "b"], ["c"]):
            window_findings.commit_findings(session, window, [found(key, number) for number, key in enumerate(keys)])
            hop_results.commit_results(
                session,
                window,
                hop_results.RECONCILED,
                [HopResult(hop="a→b", counts=HopCounts(missing=len(keys)), digest="0")],
            )

        assert [item.finding.key for item in window_findings.findings(session, window)] == ["c"]
        assert hop_results.results(session, window)["a→b"].counts == HopCounts(missing=1)
        assert hop_results.results(session, window, hop_results.VERIFIED) == {}


def test_the_first_manifest_of_a_snapshot_stays(journal: str, window: Window) -> None:
    with connect(journal) as session:
        snapshot_manifests.commit_snapshot(session, window, "a", {"rows": 1})
        snapshot_manifests.commit_snapshot(session, window, "a", {"rows": 2})

        assert snapshot_manifests.snapshots(session, window) == {"a": {"rows": 1}}


def test_only_the_newest_judged_revision_hands_keys_over(journal: str, window: Window) -> None:
    again = Window(pipeline="demo", number=1, revision=2, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
    judged = [HopResult(hop="a→b", counts=HopCounts(), digest="0")]
    with connect(journal) as session:
        hop_results.commit_results(session, window, hop_results.RECONCILED, judged)
        handover_keys.commit_handovers(session, window, [Handover(hop="a→b", key="x", key_hash="1" * 32, since=MOMENT)])
        assert [key for (_, key, _, _) in chain(*handover_keys.handovers(session, "demo", 1))] == ["x"]

        windows.insert(session, again, request="run2", plan_only=False, configuration={})
        assert [key for (_, key, _, _) in chain(*handover_keys.handovers(session, "demo", 1))] == ["x"]

        hop_results.commit_results(session, again, hop_results.RECONCILED, judged)
        assert list(handover_keys.handovers(session, "demo", 1)) == []


def test_handovers_are_written_by_several_statements_and_counted_by_the_table(
    journal: str, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_ROWS_OF_A_STATEMENT", 2)
    keys = [
        Handover(hop=hop, key=f"{n}", key_hash=f"{n:032x}", since=MOMENT) for hop in ("b→c", "a→b") for n in range(5)
    ]
    with connect(journal) as session:
        assert handover_keys.commit_handovers(session, window, iter(keys)) == {"a→b": 5, "b→c": 5}
        assert list(handover_keys.handover_ids(session, window)) == sorted(f"{key.hop}|{key.key_hash}" for key in keys)

        # Given twice, a key is one row: the count is of the rows, not of what was given.
        assert handover_keys.commit_handovers(session, window, [*keys[:1], *keys[:3]]) == {"b→c": 3}
        assert handover_keys.commit_handovers(session, window, []) == {}
        assert list(handover_keys.handover_ids(session, window)) == []


def test_the_newest_answer_of_the_gate_counts(journal: str, window: Window) -> None:
    reports = [
        GateReport(answer=GateAnswer.ERROR, planned=3, evaluated=0, failures=("away",), document={"x": 1}),
        GateReport(answer=GateAnswer.PASS, planned=3, evaluated=3),
    ]
    with connect(journal) as session:
        for report in reports:
            gate_answers.put_gate_report(session, window, hop_results.RECONCILED, report)

        assert gate_answers.gate_reports(session, window) == {hop_results.RECONCILED: reports[1]}
