"""Test which errors of a step are kept in the journal, and that a task whose application left a reason ends with it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk.exceptions import AirflowTaskTimeout

from makewhole.journal import database, step_failures
from makewhole.journal.step_failures import StepFailure, StepPlace
from makewhole.model.errors import NotYetError, RefusedError, RequestRefusedError, TransientError
from makewhole.orchestration.last_line import log_last_line
from makewhole.orchestration.operators import SparkStep
from makewhole.orchestration.steps import recorded_failure, window_of_run
from makewhole.orchestration.steps.recorded_failure import UncertifiedError, recorded
from makewhole.orchestration.task_ids import REASON_OF_FAILURE
from tests.unit.window.committed_evidence import MOMENT

pytestmark = pytest.mark.unit

OPENED = {"pipeline": "shop", "window": 3, "revision": 2, "label": "shop window 3 (revision 2)"}


class Kept:
    """The journal: what steps left, whether it answers, and what a run opened."""

    def __init__(self) -> None:
        self.put: list[tuple[StepPlace, BaseException]] = []
        self.forgotten: list[StepPlace] = []
        self.is_away = False
        self.opened: Any = OPENED
        self.run_type = "scheduled"

    def context(self, task: str) -> dict[str, Any]:
        ti = SimpleNamespace(
            task_id=task, dag_id="makewhole_oncall", run_id="tonight", xcom_pull=lambda **_: self.opened, try_number=1
        )
        run = SimpleNamespace(run_type=self.run_type, data_interval_end=MOMENT)
        return {"ti": ti, "params": {"pipeline": "shop"}, "dag_run": run}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    known = Kept()

    @contextmanager
    def connect() -> Iterator[None]:
        if known.is_away:
            raise TransientError("the journal's PostgreSQL does not answer")
        yield None

    monkeypatch.setattr(database, "connect", connect)
    monkeypatch.setattr(step_failures, "put", lambda _, place, error: known.put.append((place, error)))
    monkeypatch.setattr(step_failures, "forget", lambda _, place: known.forgotten.append(place))
    return known


def place_of(step: str, **window: Any) -> StepPlace:
    return StepPlace(pipeline="shop", step=step, dag="makewhole_oncall", run="tonight", **window)


def run_step(kept: Kept, monkeypatch: pytest.MonkeyPatch, task: str, error: BaseException | None) -> None:
    @recorded
    def work() -> str:
        if error is not None:
            raise error
        return "done"

    monkeypatch.setattr(recorded_failure, "get_current_context", lambda: kept.context(task))
    if error is None:
        assert work() == "done"
        return
    with pytest.raises(type(error)) as raised:
        work()
    assert raised.value is error


@pytest.mark.parametrize("error", [RefusedError("no"), TransientError("away"), KeyError("x"), AirflowTaskTimeout()])
def test_what_breaks_a_step_is_kept_with_its_window_and_run(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    run_step(kept, monkeypatch, "compensate", error)
    assert kept.put == [(place_of("compensate", number=3, revision=2), error)]
    assert kept.forgotten == []


def test_to_wait_is_no_failure_of_a_step(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    run_step(kept, monkeypatch, "certify", NotYetError("later"))
    assert (kept.put, kept.forgotten) == ([], [])


def test_a_window_with_gaps_is_a_step_that_ended_well(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    run_step(kept, monkeypatch, "certify", UncertifiedError("gaps"))
    assert (kept.put, kept.forgotten) == ([], [place_of("certify", number=3, revision=2)])


def test_a_step_that_ends_well_leaves_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    run_step(kept, monkeypatch, "verify", None)
    assert (kept.put, kept.forgotten) == ([], [place_of("verify", number=3, revision=2)])


def test_a_run_that_opens_no_window_is_kept_once_by_its_pipeline(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.opened, error = None, RefusedError("no such topic")
    run_step(kept, monkeypatch, "open_window", error)
    run_step(kept, monkeypatch, "certify", AirflowFailException("no window was opened in this run"))
    assert kept.put == [(place_of("open_window"), error)]


@pytest.mark.parametrize(
    ("run_type", "error", "is_request"),
    [
        ("manual", RequestRefusedError("the interval ends in the future"), True),
        ("scheduled", RequestRefusedError("the interval lies across windows"), False),
        ("manual", RefusedError("no such topic"), False),
    ],
)
def test_a_refused_request_of_a_form_is_no_pipeline_that_stands_still(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, run_type: str, error: RefusedError, is_request: bool
) -> None:
    kept.opened, kept.run_type = None, run_type
    run_step(kept, monkeypatch, "open_window", error)
    assert kept.put == [(place_of("open_window", is_request=is_request), error)]


@pytest.mark.parametrize("task", ["restore", "reopen"])
def test_what_breaks_an_undo_is_kept_with_the_window_whose_rows_it_puts_back(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    error = RefusedError("no such table")
    run_step(kept, monkeypatch, task, error)
    assert kept.put == [(place_of(task, number=3, revision=2), error)]
    kept.opened = None  # no row was put back: the undo was refused, or turned down
    run_step(kept, monkeypatch, task, error)
    assert len(kept.put) == 1


def test_the_error_itself_is_raised_where_the_journal_is_away(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.is_away = True
    run_step(kept, monkeypatch, "plan", RefusedError("no"))
    run_step(kept, monkeypatch, "plan", None)


# Applications of Spark


def submitted(kept: Kept, monkeypatch: pytest.MonkeyPatch, broke: str, reason: str | None, run: str = "tonight") -> str:
    """Return the message of the task's end whose application broke, and had left a reason in a run."""
    left = StepFailure(step="snapshot", dag="", run=run, is_permanent=True, reason=reason or "", failed_at=MOMENT)
    monkeypatch.setattr(step_failures, "at", lambda *_: left if reason else None)
    monkeypatch.setattr(window_of_run, "committed_step", lambda *_: None)
    monkeypatch.setattr(SparkStep.__base__, "execute", MagicMock(side_effect=AirflowException(broke)))
    task = SparkStep(task_id="snapshot", application=__file__)
    with pytest.raises(AirflowException) as raised:
        task.execute(kept.context("snapshot"))  # type: ignore[arg-type]
    assert isinstance(raised.value, AirflowFailException) is ("64" in broke)
    return str(raised.value)


@pytest.mark.parametrize("code", [64, 1])
def test_the_end_of_a_task_is_the_reason_that_its_application_left(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    message = submitted(kept, monkeypatch, f"Cannot execute: spark-submit. Error code is: {code}.", "no column amount")
    assert message == "snapshot of shop window 3 (revision 2): no column amount"
    assert kept.forgotten == [place_of("snapshot", number=3, revision=2)]  # before: of an earlier try
    assert kept.put == []


def test_an_application_that_left_no_reason_is_kept_with_what_spark_submit_says(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = submitted(kept, monkeypatch, "Cannot execute: spark-submit. Error code is: 137.", None)
    assert message == "Cannot execute: spark-submit. Error code is: 137."
    [(place, error)] = kept.put
    assert place == place_of("snapshot", number=3, revision=2)
    assert str(error).endswith("(Cannot execute: spark-submit. Error code is: 137.)")


def test_the_reason_of_another_run_is_not_taken_for_that_of_this_one(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = submitted(kept, monkeypatch, "Error code is: 64.", "no column amount", run="last night")
    assert "no column amount" not in message


def test_what_cannot_be_submitted_fails_at_once_and_is_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """YARN in cluster mode: the operator raises a ValueError, which Airflow would try again for hours."""
    monkeypatch.setattr(window_of_run, "committed_step", lambda *_: None)
    monkeypatch.setattr(SparkStep.__base__, "execute", MagicMock(side_effect=ValueError("durable=True requires …")))
    task = SparkStep(task_id="snapshot", application=__file__)
    with pytest.raises(AirflowFailException, match=r"Spark could not be submitted: durable=True requires …") as raised:
        task.execute(kept.context("snapshot"))  # type: ignore[arg-type]
    assert "makewhole check --live" in str(raised.value)
    assert isinstance(kept.put[-1][1], RefusedError)


def test_a_job_whose_file_is_gone_is_not_submitted(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_of_run, "committed_step", lambda *_: None)
    task = SparkStep(task_id="snapshot", application="/nowhere/snapshot.py")
    with pytest.raises(AirflowFailException, match=r"there is no job /nowhere/snapshot.py; install makewhole again"):
        task.execute(kept.context("snapshot"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (AirflowFailException("one\ntwo. Write three"), "open_window failed: two. Write three"),
        (RuntimeError("a secret"), "open_window failed: an error that was not foreseen (RuntimeError); the log has"),
    ],
)
def test_the_last_line_of_a_failed_tasks_log_is_its_reason(
    error: Exception, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    left: dict[str, str] = {}
    ti = SimpleNamespace(task_id="open_window", xcom_push=lambda key, value: left.update({key: value}))
    with caplog.at_level(logging.INFO, "makewhole.orchestration.last_line"):
        log_last_line({"exception": error, "ti": ti})
    assert caplog.messages[-2] == "::endgroup::"  # of the group that Airflow opens around callbacks, and shows closed
    assert caplog.messages[-1].startswith(line)
    assert left == {REASON_OF_FAILURE: caplog.messages[-1]}
    assert "secret" not in caplog.text
