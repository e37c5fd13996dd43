"""Test the session at a people's database: the parameters of its connection reach libpq."""

import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest

from makewhole.journal.database import JournalSession
from makewhole.journal.database import connect as connect_journal
from makewhole.model.errors import ConfigurationError, PermanentError, TransientError
from makewhole.postgres.connect import connect
from makewhole.sql import PgConnection
from tests.integration.postgres.people import People
from tests.world.sql import run_sql

pytestmark = pytest.mark.integration


def test_what_a_connection_says_about_time_reaches_libpq(people: People) -> None:
    own = {"tcp_user_timeout": "30000", "keepalives_idle": "17", "connect_timeout": "4"}
    given = replace(people.connection, dsn=psycopg2.extensions.make_dsn(people.connection.dsn, **own))
    with connect(given) as session:
        used = session.info.dsn_parameters
    assert {name: used[name] for name in own} == own


def test_a_connection_that_says_nothing_notices_a_server_that_is_gone(people: People) -> None:
    chosen = {"connect_timeout": "10", "keepalives_idle": "60", "keepalives_interval": "10", "keepalives_count": "6"}
    with connect(people.connection) as session, connect_journal(people.connection.dsn) as journal:
        for connection in (session, journal):
            assert {name: connection.info.dsn_parameters[name] for name in chosen} == chosen


def test_a_statement_that_hangs_is_ended_and_can_be_tried_again(people: People) -> None:
    began = time.monotonic()
    with (
        pytest.raises(TransientError, match=r"the server ended a statement \(QueryCanceled \(57014\)\); where it took"),
        connect(replace(people.connection, statement_seconds=0.3)) as session,
        session.cursor() as cursor,
    ):
        cursor.execute("select pg_sleep(20)")
    assert time.monotonic() - began < 10


def test_an_error_names_the_session_that_it_is_of(people: People) -> None:
    with (
        pytest.raises(PermanentError, match="while reading one table"),
        connect(people.connection, "reading one table") as session,
        connect(people.connection, "reading another table"),
        session.cursor() as cursor,
    ):
        cursor.execute("select nothing from nowhere")
    with (
        pytest.raises(TransientError, match="the session with the journal's PostgreSQL broke"),
        connect_journal(people.connection.dsn) as journal,
        connect(people.connection, "reading a table"),
        journal.cursor() as cursor,
    ):
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


def test_every_session_has_a_limit_for_its_statements(people: People) -> None:
    own = replace(
        people.connection,
        dsn=psycopg2.extensions.make_dsn(people.connection.dsn, options="-c statement_timeout=7s"),
        statement_seconds=3600.0,
    )
    with connect(replace(people.connection, statement_seconds=3600.0)) as session, connect(own) as chosen:
        assert (_limit(session), _limit(chosen)) == ("1h", "7s")
        session.rollback()
        assert _limit(session) == "1h"
    with connect_journal(people.connection.dsn) as journal:
        assert _limit(journal) == "30min"
    with closing(JournalSession(people.connection.dsn)) as kept, kept.transaction() as journal:
        assert _limit(journal) == "30min"


ROLE = "mw_refused"


@pytest.fixture
def refused(people: People) -> Iterator[str]:
    """The URI of a user of its own, who may log in once."""
    run_sql(people.connection.dsn, f"create role {ROLE} login password 'SECRET' connection limit 1")
    parts = urlsplit(people.connection.dsn)
    yield urlunsplit(parts._replace(netloc=f"{ROLE}:SECRET@{parts.netloc.rpartition('@')[2]}"))
    run_sql(people.connection.dsn, f"drop role {ROLE}")


REFUSED = {
    "password": "the server refuses the user or its password (SQLSTATE 28P01)",
    "user": "the server refuses the user or its password (SQLSTATE 28P01)",
    "login": (
        "the server lets no such user log in, or not from this host, to this database or in this way (TLS) "
        "(SQLSTATE 28000)"
    ),
    "database": "the server has no database of this name (SQLSTATE 3D000)",
    "right": "the server gives its user no right to this database (SQLSTATE 42501)",
    "parameter": "the server refuses the session (SQLSTATE 42704)",
    "no password": "has no password, and the server asks for one",
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_session_that_the_server_refuses_is_for_a_person_to_correct(
    people: People, refused: str, mistake: str
) -> None:
    uri, database = people.connection.dsn, urlsplit(people.connection.dsn).path[1:]
    if mistake == "login":
        run_sql(uri, f"alter role {ROLE} nologin")
    if mistake == "right":
        run_sql(uri, f"revoke connect on database {database} from public")
    wrong = {
        "password": refused.replace("SECRET", "SECRET_OF_YESTERDAY"),
        "user": refused.replace(ROLE, "mw_unknown"),
        "database": refused.replace(database, "mw_unknown"),
        "parameter": f"{refused}?options=-c%20mw_unknown%3D1",
        "no password": refused.replace(":SECRET", ""),
    }.get(mistake, refused)

    with pytest.raises(ConfigurationError) as of_point, connect(replace(people.connection, dsn=wrong)):
        pass
    with pytest.raises(ConfigurationError) as of_journal, connect_journal(wrong):
        pass

    [problem], [of_connection] = of_journal.value.problems, of_point.value.problems
    assert (problem.path, problem.found) == ("MAKEWHOLE_JOURNAL_DSN", REFUSED[mistake])
    assert (of_connection.path, of_connection.found) == (people.connection.id, REFUSED[mistake])
    shown = [*traceback.format_exception(of_point.value), *traceback.format_exception(of_journal.value)]
    assert "SECRET" not in "".join(shown)


def test_a_server_that_takes_no_more_sessions_is_asked_again(people: People, refused: str) -> None:
    with (
        closing(psycopg2.connect(refused)),
        pytest.raises(TransientError, match="does not answer"),
        connect(replace(people.connection, dsn=refused)),
    ):
        pass


def _limit(session: PgConnection) -> str:
    with session.cursor() as cursor:
        cursor.execute("show statement_timeout")
        return str(cursor.fetchall()[0][0])
