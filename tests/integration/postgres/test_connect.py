"""Test the session at a people's database: the parameters of its connection reach libpq."""

from dataclasses import replace

import psycopg2
import pytest

from makewhole.journal.database import connect as connect_journal
from makewhole.postgres.connect import connect
from tests.integration.postgres.people import People

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
        for one in (session, journal):
            assert {name: one.info.dsn_parameters[name] for name in chosen} == chosen
