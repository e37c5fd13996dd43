"""A database of people's for each test."""

from collections.abc import Iterator

import pytest

from makewhole.model.connection import PostgresConnection
from tests.integration.postgres.people import People
from tests.world.kept_sessions import kept_sessions


@pytest.fixture
def people(database: str) -> People:
    return People(connection=PostgresConnection(id="people", dsn=database))


@pytest.fixture
def kept() -> Iterator[None]:
    """Keep sessions for the next one who asks: for tests of many small questions, each in a session of its own."""
    with kept_sessions():
        yield
