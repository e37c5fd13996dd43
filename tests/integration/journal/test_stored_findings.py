"""Test that findings are read batch by batch, and that outcomes are written to those that have others."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from makewhole.journal import plan_progress, plans, windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.key_history import reported_keys
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.actions import Action, BeforeUpsert
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
PLAN = Plan(
    id="demo-1-x",
    pipeline="demo",
    window=1,
    revision=1,
    sha256="0" * 64,
    payload_uri=None,
    counts={"upsert": 3},
    state=PlanState.DONE,
)


@pytest.fixture
def window(journal: str) -> Window:
    opened = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
    with connect(journal) as session:
        windows.insert(session, opened, request="run", plan_only=False, configuration={})
        windows.insert(session, replace(opened, revision=2), request="again", plan_only=False, configuration={})
    return opened


def found(number: int, hop: str = "a→b", verdict: Verdict = Verdict.MISSING) -> Finding:
    key_hash = f"{number * 7919 % 1000:032x}"
    return Finding(
        hop=hop,
        key=f"k{number}",
        key_hash=key_hash,
        verdict=verdict,
        cause=Cause.NEVER_PRODUCED,
        evidence={"n": number},
    )


def test_batches_have_all_findings_once_and_those_of_a_key_together(journal: str, window: Window) -> None:
    wanted = [found(number, hop) for number in range(25) for hop in ("a→b", "b→c", "c→d")[: 1 + number % 3]]
    with connect(journal) as session:
        window_findings.commit_findings(session, window, wanted)
        window_findings.commit_findings(session, replace(window, revision=2), [found(99)])
        stored = StoredFindings(window=window)
        batches = list(stored.batches(session, size=7))
        kinds = stored.kinds(session)
        in_order = [(item.finding.hop, item.finding.key) for item in stored.in_order(session)]
        nothing = list(StoredFindings(window=replace(window, number=2)).batches(session))

    read = [item.finding for batch in batches for item in batch]
    assert sorted(read, key=repr) == sorted(wanted, key=repr)
    assert [finding.key_hash for finding in read] == sorted(finding.key_hash for finding in wanted)
    keys = [{item.finding.key_hash for item in batch} for batch in batches]
    assert all(not (part & other) for at, part in enumerate(keys) for other in keys[at + 1 :])
    assert [len(batch) >= 7 for batch in batches[:-1]] == [True] * (len(batches) - 1)
    assert kinds == {(hop, Verdict.MISSING) for hop in ("a→b", "b→c", "c→d")}
    assert in_order == sorted((finding.hop, finding.key) for finding in wanted)
    assert nothing == []


def test_a_finding_whose_outcome_stays_is_not_written_again(journal: str, window: Window) -> None:
    """A row that is written gets another `xmin`."""
    first, second, third, fourth = (found(number) for number in range(4))
    with connect(journal) as session:
        window_findings.commit_findings(session, window, [first, second, third, fourth])
    before = _rows(journal)
    compared = replace(third, evidence={**third.evidence, "compared": {"a": 1, "nul": "\x00"}})
    with connect(journal) as session:
        judged = [
            JudgedFinding(finding=first, outcome="repaired"),
            JudgedFinding(finding=second, outcome="open"),
            JudgedFinding(finding=compared, outcome="open", reason="b holds it twice"),
            JudgedFinding(finding=found(99), outcome="repaired"),
        ]
        window_findings.set_outcomes(session, window, judged)
        window_findings.set_outcomes(session, window, [])
        counted = window_findings.count_outcomes(session, window)
    after = _rows(journal)

    assert {key: row[1:] for key, row in after.items()} == {
        "k0": ("repaired", None, {"n": 0}),
        "k1": ("open", None, {"n": 1}),
        "k2": ("open", "b holds it twice", {"n": 2, "compared": {"a": 1, "nul": "\\u0000"}}),
        "k3": ("open", None, {"n": 3}),
    }
    assert {key for key, row in after.items() if row[0] != before[key][0]} == {"k0", "k2"}
    assert counted == {("missing", "open"): 3, ("missing", "repaired"): 1}


def test_what_a_plan_refused_is_marked_on_its_own_findings(journal: str, window: Window) -> None:
    findings = [found(number) for number in range(3)]
    with connect(journal) as session:
        for revision in (1, 2):
            window_findings.commit_findings(session, replace(window, revision=revision), findings)
        lines = (_action(seq, findings[seq // 2]).line() for seq in range(3))
        plans.put_plan(session, plans.StoredPlan(plan=PLAN, payload_sha256=None), lines)
        refused = {0: Refusal(RefusalCode.STALE, "first"), 1: Refusal(RefusalCode.STALE, "second")}
        plan_progress.refuse_actions(session, PLAN.id, refused)
        plan_progress.refuse_findings_of(session, PLAN)

    assert {key: row[1:3] for key, row in _rows(journal).items()} == {
        "k0": ("refused", "stale: first"),
        "k1": ("open", None),
        "k2": ("open", None),
    }
    assert {row[1] for row in _rows(journal, 2).values()} == {"open"}


def test_chunks_for_which_writers_wait_are_counted_by_target(journal: str, window: Window) -> None:
    del window
    locking = [(0, True), (0, True), (1, True), (2, False)]
    actions = [
        replace(_action(seq, found(seq)), chunk=chunk, before=BeforeUpsert(place="pg:b", locks_table=locks_table))
        for seq, (chunk, locks_table) in enumerate(locking)
    ]
    with connect(journal) as session:
        lines = (action.line() for action in actions)
        plans.put_plan(session, plans.StoredPlan(plan=PLAN, payload_sha256=None), lines)

        assert plan_progress.locking_chunks(session, PLAN.id) == {"b": 2}
        assert [item.action.seq for item in plan_progress.actions_of(session, PLAN.id, most=2)] == [0, 1]
        assert len(list(plan_progress.actions_of(session, PLAN.id))) == 4


def _action(seq: int, finding: Finding) -> Action:
    return Action(
        seq=seq,
        hop=finding.hop,
        target="b",
        key=finding.key,
        key_hash=finding.key_hash,
        before=BeforeUpsert(place="pg:b"),
    )


def _rows(journal: str, revision: int = 1) -> dict[str, tuple[object, ...]]:
    with connect(journal) as session:
        return {key: tuple(row) for key, *row in _read(session, revision)}


def _read(session: PgConnection, revision: int) -> list[tuple[str, object]]:
    with session.cursor() as cursor:
        cursor.execute(
            "select key, xmin::text, outcome, outcome_reason, evidence from makewhole.finding where revision = %s",
            (revision,),
        )
        return cursor.fetchall()


def test_a_key_that_had_no_row_is_not_among_those_whose_rows_were_reported(journal: str, window: Window) -> None:
    """Rows of it that come since are news."""
    rows: dict[Verdict, tuple[int, ...]] = {
        Verdict.MISMATCHED: (1,),
        Verdict.UNDECIDABLE: (0, 1),
        Verdict.VANISHED: (0,),
        Verdict.ERASED: (0,),
        Verdict.MISSING: (0,),
    }
    pairs = [(verdict, copies) for verdict, counts in rows.items() for copies in counts]
    stored = [
        replace(found(number, verdict=verdict), evidence={"target_copies": copies})
        for number, (verdict, copies) in enumerate(pairs)
    ]
    with connect(journal) as session:
        window_findings.commit_findings(session, window, stored)
        results = [HopResult(hop="a→b", counts=HopCounts(), digest="0")]
        hop_results.commit_results(session, window, hop_results.RECONCILED, results)
        pieces = [*reported_keys(session, replace(window, number=2), "a→b", 1)]

    # The window is open: it judges them again, and how many there are is left to it.
    assert [tuple(row) for piece in pieces for row in piece] == sorted(
        (item.key_hash, None) for item in stored if item.evidence["target_copies"]
    )
