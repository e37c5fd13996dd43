"""Test why a step did not end well, as the journal keeps it."""

import psycopg2
import pytest

from makewhole.journal import step_failures
from makewhole.journal.database import connect
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.window import WindowState
from tests.integration.window.waiting_rows import failed, opened

pytestmark = pytest.mark.integration


def test_a_failure_is_replaced_by_the_next_and_goes_when_the_step_ends_well(journal: str) -> None:
    with connect(journal) as session:
        window = opened(session, 1, WindowState.OPEN)
        failed(session, "snapshot", TransientError("away"), window)
        failed(session, "snapshot", RefusedError("no column"), window, run="second")
        failed(session, "plan", KeyError("a secret"), window)
        first, second = step_failures.of(session, window)
        assert (first.step, first.reason, first.is_permanent) == (
            "plan",
            "an error that was not foreseen (KeyError); the log has where. Report it with these lines",
            True,
        )
        assert (second.step, second.run, second.reason, second.is_permanent) == (
            "snapshot",
            "second",
            "no column",
            True,
        )
        step_failures.forget(session, StepPlace(pipeline="shop", step="plan", dag="", run="", number=1, revision=1))
        assert [failure.step for failure in step_failures.of(session, window)] == ["snapshot"]


def test_of_a_statement_that_postgresql_refuses_no_data_is_kept(journal: str) -> None:
    with connect(journal) as session, session.cursor() as cursor, pytest.raises(psycopg2.Error) as refused:
        cursor.execute("select 'a secret of mine'::integer as number, 1 / 0")
    with connect(journal) as session, session.cursor() as cursor, pytest.raises(psycopg2.Error) as twice:
        opened(session, 1, WindowState.OPEN)
        opened(session, 1, WindowState.OPEN)
    assert step_failures.reason_of(twice.value) == (
        "PostgreSQL refused a statement of makewhole's own: duplicate key value violates unique constraint "
        '"window_pkey"'
    )
    assert "a secret" in str(refused.value)
