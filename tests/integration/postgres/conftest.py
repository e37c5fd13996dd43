"""A database of people's for each test."""

import pytest

from makewhole.model.connection import PostgresConnection
from tests.integration.postgres.people import People


@pytest.fixture
def people(database: str) -> People:
    return People(connection=PostgresConnection(id="people", dsn=database))
