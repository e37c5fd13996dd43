"""Test that a revision which could read less than an older one does not take its place for later windows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.journal.key_index import runs
from makewhole.journal.key_index.runs import IndexedTopic, standing_runs
from makewhole.journal.results import handover_keys, hop_results, snapshot_manifests
from makewhole.journal.results.handover_keys import Handover
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.verdict import Cause, Finding, HopCounts, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
FIRST = Window(pipeline="demo", number=1, revision=1, start=None, end=MOMENT, opened_at=MOMENT, ranges={})
HOP = "a→b"


def judge(session: PgConnection, revision: int, *, expired: int, keys: tuple[str, ...] = ()) -> Window:
    """Commit a revision of the first window that could not read so many offsets, and hands over these keys."""
    window = replace(FIRST, revision=revision)
    windows.insert(session, window, request=f"run{revision}", plan_only=False, configuration={})
    snapshot_manifests.commit_snapshot(session, window, "a", {"accounting": {"expired": expired}, "files": {}})
    snapshot_manifests.commit_snapshot(session, window, "b", {"rows": revision, "files": {}})
    waiting = [Handover(hop=HOP, key=key, key_hash=key * 32, since=MOMENT) for key in keys]
    handover_keys.commit_handovers(session, window, waiting)
    runs.put_key_run(session, window, "a", {"00": f"run of {revision}"}, 1)
    results = [HopResult(hop=HOP, counts=HopCounts(), digest="0")]
    hop_results.commit_results(session, window, hop_results.RECONCILED, results)
    return window


def handed(session: PgConnection) -> list[str]:
    return [key for (_, key, _, _) in chain(*handover_keys.handovers(session, "demo", 1))]


def test_keys_of_an_older_revision_are_handed_over_until_a_newer_one_says_what_they_are(journal: str) -> None:
    with connect(journal) as session:
        judge(session, 1, expired=0, keys=("1", "2", "3"))
        partial = judge(session, 2, expired=5, keys=("3", "4"))
        assert handed(session) == ["1", "2", "3", "4"]

        missing = Finding(
            hop=HOP,
            key="2",
            key_hash="2" * 32,
            verdict=Verdict.MISSING,
            cause=Cause.NEVER_PRODUCED,
            evidence={},
        )
        window_findings.commit_findings(session, partial, [missing])
        assert handed(session) == ["1", "3", "4"]

        judge(session, 3, expired=0, keys=("5",))
        assert handed(session) == ["5"]


def test_the_run_and_the_files_that_count_are_those_of_the_fullest_reading(journal: str) -> None:
    with connect(journal) as session:
        judge(session, 1, expired=2)
        judge(session, 2, expired=2)
        judge(session, 3, expired=9)
        judge(session, 4, expired=4)

        [run] = standing_runs(session, IndexedTopic(pipeline="demo", point="a"))
        assert (run.windows, run.revisions, run.files) == ((1,), {1: 2}, {"00": "run of 2"})
        manifests = snapshot_manifests.fullest_snapshots(session, FIRST)
        assert {point: manifest["revision"] for point, manifest in manifests.items()} == {"a": 2, "b": 4}
        before = snapshot_manifests.snapshots_before(session, replace(FIRST, revision=3), "b")
        assert [manifest["rows"] for manifest in before] == [1, 2]


def judge_behind(session: PgConnection, revision: int) -> None:
    """Commit a revision of the second window."""
    window = replace(FIRST, number=2, revision=revision, start=MOMENT, end=MOMENT + timedelta(days=1))
    windows.insert(session, window, request=f"behind{revision}", plan_only=False, configuration={})
    snapshot_manifests.commit_snapshot(session, window, "a", {"files": {}})
    results = [HopResult(hop=HOP, counts=HopCounts(), digest="0")]
    hop_results.commit_results(session, window, hop_results.RECONCILED, results)


def test_a_window_is_overtaken_by_a_comparison_of_the_next_one_that_was_not_given_its_keys(journal: str) -> None:
    with connect(journal) as session:
        first = judge(session, 1, expired=0, keys=("1",))
        assert not handover_keys.is_overtaken(session, first)
        judge_behind(session, 1)
        assert not handover_keys.is_overtaken(session, first)

        second = judge(session, 2, expired=0, keys=("1", "2"))
        assert not handover_keys.is_overtaken(session, first)
        assert handover_keys.is_overtaken(session, second)
        judge_behind(session, 2)
        # It was given the keys of the newest revision, and of an older one only what that could not read.
        assert handover_keys.is_overtaken(session, first)
        assert not handover_keys.is_overtaken(session, second)


def test_keys_of_an_older_revision_that_read_more_are_given_beside_those_of_a_newer_one(journal: str) -> None:
    with connect(journal) as session:
        first = judge(session, 1, expired=0, keys=("1",))
        second = judge(session, 2, expired=5, keys=("2",))
        judge_behind(session, 1)

        assert not handover_keys.is_overtaken(session, first)
        assert not handover_keys.is_overtaken(session, second)


def test_what_the_next_window_was_given_is_what_had_been_compared_when_its_snapshots_were_taken(journal: str) -> None:
    with connect(journal) as session:
        behind = replace(FIRST, number=2, start=MOMENT, end=MOMENT + timedelta(days=1))
        windows.insert(session, behind, request="behind", plan_only=False, configuration={})
        snapshot_manifests.commit_snapshot(session, behind, "a", {"files": {}})
        first = judge(session, 1, expired=0, keys=("1",))
        assert not handover_keys.is_overtaken(session, first)

        results = [HopResult(hop=HOP, counts=HopCounts(), digest="0")]
        hop_results.commit_results(session, behind, hop_results.RECONCILED, results)
        assert handover_keys.is_overtaken(session, first)
