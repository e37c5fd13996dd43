"""Test that a step which takes long says how far it is, and that what watches it can do it no harm."""

import time
from contextlib import AbstractContextManager

import pytest
from pyspark.sql import SparkSession

from makewhole.journal.database import connect
from makewhole.journal.results import step_progress
from makewhole.journal.step_failures import StepPlace
from makewhole_spark import watch as module
from makewhole_spark.spark_carrier import SparkCarrier
from makewhole_spark.watch import StepWatch
from tests.world.sql import run_sql

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PLACE = StepPlace(pipeline="shop", step="reconcile", dag="nightly", run="tonight", number=3, revision=1)
WATCH = StepWatch(place=PLACE, label="window 3 of shop")
SECONDS = 20.0


@pytest.fixture(autouse=True)
def hurried(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setattr(module, "_SECONDS", 0.05)
    monkeypatch.setattr(module, "_SECONDS_OF_LOG", 0.1)


def shown(journal: str) -> str | None:
    with connect(journal) as session:
        progress = step_progress.of_run(session, "nightly", "tonight")
    return None if progress is None else f"{progress.step}: {progress.sentence()}"


def wait_for(journal: str, text: str) -> None:
    deadline = time.monotonic() + SECONDS
    while (seen := shown(journal)) is None or not seen.startswith(text):
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def test_a_step_says_how_far_it_is_while_it_runs_and_nothing_afterwards(
    journal: str, caplog: pytest.LogCaptureFixture
) -> None:
    counts = [(0, 8)]
    with caplog.at_level("INFO"), WATCH(lambda: counts[0]):
        wait_for(journal, "reconcile: 0 of 8 parts")
        counts[0] = (6, 8)
        wait_for(journal, "reconcile: 6 of 8 parts")

    assert shown(journal) is None
    assert run_sql(journal, "select * from makewhole.step_progress") == []
    assert "window 3 of shop: reconcile: 6 of 8 parts" in caplog.text


def test_what_a_step_that_was_killed_had_written_is_not_shown_for_long(journal: str) -> None:
    with connect(journal) as session:
        step_progress.put(session, PLACE, 3, 8)
    assert shown(journal) == "reconcile: 3 of 8 parts"
    run_sql(journal, "update makewhole.step_progress set began_at = began_at - interval '3 minutes'")
    assert shown(journal) == "reconcile: 3 of 8 parts, about 5 min left"
    run_sql(journal, "update makewhole.step_progress set noted_at = noted_at - interval '2 minutes'")

    assert shown(journal) is None


@pytest.mark.parametrize("broken", ["counts", "journal"])
def test_watching_that_fails_leaves_the_step_alone(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counts() -> tuple[int, int]:
        asked.append(1)
        if broken == "counts":
            raise RuntimeError("Java is away")
        return 1, 2

    if broken == "journal":
        monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", "postgresql://x@127.0.0.1:1/x?connect_timeout=1")
    with WATCH(counts):
        deadline = time.monotonic() + SECONDS
        while not asked:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_what_ends_at_once_is_not_watched(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 60.0)
    began = time.monotonic()

    with WATCH(lambda: (1, 2)):
        pass

    assert time.monotonic() - began < SECONDS
    assert run_sql(journal, "select * from makewhole.step_progress") == []


def slow(number: int) -> int:
    time.sleep(0.5)
    return number


@pytest.mark.on_spark
def test_the_tasks_of_spark_are_counted_while_they_run(spark: SparkSession) -> None:
    seen: list[tuple[int, int]] = []

    def watching(counts: module.TaskCounts) -> AbstractContextManager[None]:
        def noted() -> tuple[int, int] | None:
            count = counts()
            if count is not None:
                seen.append(count)
            return count

        return WATCH(noted)

    carrier = SparkCarrier(spark.sparkContext, watch=watching)

    assert carrier.carry(list(range(8)), slow) == list(range(8))

    assert seen
    [total] = {total for _, total in seen}
    done = [done for done, _ in seen]
    assert done == sorted(done)
    assert 0 < max(done) <= total <= 8
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
