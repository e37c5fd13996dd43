"""Test one connection for many short transactions: nothing is held between them, and a broken one is made again."""

import time
from collections.abc import Callable

import pytest

from makewhole.journal.database import JournalSession
from makewhole.model.errors import TransientError
from makewhole.sql import PgConnection
from tests.world.sql import Rows, run_sql

pytestmark = pytest.mark.integration


def test_transactions_share_a_connection_and_hold_nothing_between_them(journal: str) -> None:
    with JournalSession(journal) as kept:
        backends = []
        for _ in range(3):
            with kept.transaction() as session:
                backends.append(_backend(session))
        assert len(set(backends)) == 1
        assert _states(journal, backends[0]) == [("idle",)]
    assert _wait_for(lambda: _states(journal, backends[0]) == [])


def test_a_connection_that_broke_between_transactions_is_made_again(journal: str) -> None:
    with JournalSession(journal) as kept:
        with kept.transaction() as session:
            before = _backend(session)
        _end(journal, before)
        with kept.transaction() as session:
            assert _backend(session) != before


def test_a_connection_that_breaks_in_a_transaction_is_reported_and_what_was_done_is_undone(journal: str) -> None:
    with JournalSession(journal) as kept:
        message = "the session with the journal's PostgreSQL broke; try again"
        with (
            pytest.raises(TransientError, match=message),
            kept.transaction() as session,
            session.cursor() as cursor,
        ):
            cursor.execute("insert into makewhole.lease values ('r', 'h', 1, now())")
            _end(journal, _backend(session))
            cursor.execute("select 1")
        with kept.transaction() as session, session.cursor() as cursor:
            cursor.execute("select count(*) from makewhole.lease")
            assert cursor.fetchall() == [(0,)]


def test_a_transaction_whose_client_stopped_is_ended_by_the_server(journal: str) -> None:
    with JournalSession(journal) as kept:
        with pytest.raises(TransientError), kept.transaction(idle_seconds=0.2) as session, session.cursor() as cursor:
            cursor.execute("insert into makewhole.lease values ('r', 'h', 1, now())")
            time.sleep(1)
            cursor.execute("select 1")
        with kept.transaction(idle_seconds=0.2):
            pass
        time.sleep(1)  # no transaction is open: nothing is ended
        with kept.transaction() as session:
            assert _backend(session)


def test_an_error_in_a_transaction_undoes_it_and_the_session_goes_on(journal: str) -> None:
    with JournalSession(journal) as kept:
        with pytest.raises(ValueError), kept.transaction() as session, session.cursor() as cursor:
            before = _backend(session)
            cursor.execute("insert into makewhole.lease values ('r', 'h', 1, now())")
            raise ValueError
        with kept.transaction() as session, session.cursor() as cursor:
            cursor.execute("select count(*) from makewhole.lease")
            assert (cursor.fetchall(), _backend(session)) == ([(0,)], before)


def _backend(session: PgConnection) -> int:
    with session.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        ((backend,),) = cursor.fetchall()
        return int(backend)


def _states(journal: str, backend: int) -> Rows:
    return run_sql(journal, "select state from pg_stat_activity where pid = %s", backend)


def _end(journal: str, backend: int) -> None:
    run_sql(journal, "select pg_terminate_backend(%s, 5000)", backend)


def _wait_for(condition: Callable[[], object]) -> bool:
    until = time.monotonic() + 10
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
