"""Test the exit code of a job, by which the task of Airflow knows whether to try again, and how a job goes on."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

from makewhole.journal import step_failures
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration.task_ids import SPARK_STEPS
from makewhole_spark import job, spark_start, submitted
from makewhole_spark.step_names import RECONCILE, SNAPSHOT, STEPS, VALIDATE, steps_through
from makewhole_spark.window_steps import Job

pytestmark = pytest.mark.unit

Play = Callable[[str, Job], str]
Start = Callable[..., None]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start a job whose steps do as they are asked, with these arguments."""
    journals: list[MagicMock] = []

    @contextmanager
    def connect() -> Iterator[MagicMock]:
        """No connection is open but the one of the step that works."""
        assert not journals
        journals.append(MagicMock())
        try:
            yield journals[0]
        finally:
            journals.clear()

    def begin(step: str, play: Play, *arguments: str) -> None:
        journals.clear()
        monkeypatch.setattr(job, "run_step", play)
        monkeypatch.setattr("sys.argv", ["job", "--pipeline", "shop", "--window", "1", "--revision", "1", *arguments])
        submitted.main(step)

    context = MagicMock()
    context.window.label = "shop window 1"
    context.pipeline.time_limits = TimeLimits()
    context.connections = {}
    monkeypatch.setattr(job, "connect", connect)
    monkeypatch.setattr(job, "window_context", lambda _: context)
    for name in ("windows", "load_meanwhile"):
        monkeypatch.setattr(job, name, MagicMock())
    monkeypatch.setattr(spark_start, "spark_in_thread", lambda _: started())
    return begin


def started() -> spark_start.StartingSpark:
    """A session that is there."""
    starting = spark_start.StartingSpark()
    starting.context.set_result(MagicMock())
    return starting


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """What is kept of steps that broke."""
    put = MagicMock()
    monkeypatch.setattr(step_failures, "put", put)
    return put


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TransientError("away"), job.EXIT_TRANSIENT),
        (RefusedError("no"), job.EXIT_PERMANENT),
        (KeyError("column"), job.EXIT_PERMANENT),
        (TypeError("not a number"), job.EXIT_PERMANENT),
    ],
)
def test_a_job_that_breaks_leaves_the_reason_and_is_tried_again_only_when_that_may_help(
    start: Start, kept: MagicMock, error: Exception, code: int
) -> None:
    def run(_: str, __: Job) -> str:
        raise error

    with pytest.raises(SystemExit) as ended:
        start(SNAPSHOT, run, "--through", VALIDATE, "--asked-by", "tonight", "--dag", "makewhole_oncall")
    assert ended.value.code == code
    place = StepPlace(pipeline="shop", step=SNAPSHOT, dag="makewhole_oncall", run="tonight", number=1, revision=1)
    assert [call.args[1:] for call in kept.call_args_list] == [(place, error)]


def test_what_a_later_step_breaks_on_is_left_to_its_own_task(start: Start, kept: MagicMock) -> None:
    def run(step: str, _: Job) -> str:
        if step == RECONCILE:
            raise RefusedError("no")
        return ""

    start(SNAPSHOT, run, "--through", VALIDATE)
    kept.assert_not_called()


def test_what_ends_at_its_time_limit_leaves_the_reason(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[Callable[[], None] | None] = []

    @contextmanager
    def limited(*arguments: Any) -> Iterator[None]:
        ends.append(arguments[3])
        yield

    put = MagicMock()
    monkeypatch.setattr(step_failures, "put", put)
    monkeypatch.setattr(job, "ending_process_after", limited)
    start(SNAPSHOT, lambda *_: "", "--through", RECONCILE)
    own, later = ends
    assert own is not None
    own()
    [call] = put.call_args_list
    assert str(call.args[2]).startswith("it took longer than ")
    assert later is None


@pytest.mark.parametrize(
    ("error", "code"), [(TransientError("no place"), job.EXIT_TRANSIENT), (TypeError("no conf"), job.EXIT_PERMANENT)]
)
def test_a_session_that_does_not_start_ends_the_job_as_any_step_does(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    failed = spark_start.StartingSpark()
    failed.context.set_exception(error)
    monkeypatch.setattr(spark_start, "spark_in_thread", lambda _: failed)
    with pytest.raises(SystemExit) as ended:
        start(SNAPSHOT, lambda *_: "")
    assert ended.value.code == code


def test_the_session_is_named_by_the_step_and_the_window(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    session = MagicMock(return_value=started())
    monkeypatch.setattr(spark_start, "spark_in_thread", session)
    start(SNAPSHOT, lambda *_: "")
    session.assert_called_once_with("makewhole snapshot: shop window 1 (revision 1)")


def test_by_hand_a_job_runs_its_own_step_alone(start: Start) -> None:
    ran = []

    def run(step: str, _: Job) -> str:
        ran.append(step)
        return ""

    start(SNAPSHOT, run)
    assert ran == [SNAPSHOT]


def test_a_job_goes_on_to_the_step_that_it_is_asked_for(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    ran = []

    def run(step: str, running: Job) -> str:
        ran.append((step, running.is_own, running.asked_by))
        return f"{step} found it"

    with caplog.at_level(logging.INFO, "makewhole"):
        start(SNAPSHOT, run, "--through", VALIDATE, "--asked-by", "run 7")

    assert ran == [(SNAPSHOT, True, "run 7"), (RECONCILE, False, "run 7"), (VALIDATE, False, "run 7")]
    assert caplog.messages == [
        "shop window 1: snapshot found it",
        "shop window 1: snapshot is committed; this application goes on with reconcile",
        "shop window 1: reconcile found it",
        "shop window 1: reconcile is committed; this application goes on with validate",
        "shop window 1: validate found it",
    ]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RefusedError("no index"), "no index"),
        (TransientError("away"), "away"),
        (KeyError("O17"), "KeyError"),
        (Py4JError("a row with a name in it"), "Py4JError"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_what_goes_wrong_in_a_later_step_ends_the_job_well_and_is_said_in_one_line(
    start: Start, caplog: pytest.LogCaptureFixture, error: Exception, cause: str
) -> None:
    def run(step: str, _: Job) -> str:
        if step == SNAPSHOT:
            return "all taken"
        raise error

    start(SNAPSHOT, run, "--through", VALIDATE)

    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == [
        f"shop window 1: reconcile did not end well here ({cause}). This does not fail this task: the task `reconcile` "
        "does it again by itself, and is red if it cannot"
    ]


def test_the_steps_are_those_of_the_tasks_in_their_order() -> None:
    assert tuple(STEPS) == SPARK_STEPS
    assert list(steps_through(SNAPSHOT, VALIDATE)) == [SNAPSHOT, RECONCILE, VALIDATE]
    assert list(steps_through(RECONCILE, VALIDATE)) == [RECONCILE, VALIDATE]
    assert list(steps_through(VALIDATE, SNAPSHOT)) == [VALIDATE]
