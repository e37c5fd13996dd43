"""Test that a connection string with a mistake is refused without any of its values."""

import traceback

import pytest

from makewhole.journal.database import open_connection
from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import ConfigurationError
from makewhole.postgres.connect import connect, server_parameters
from makewhole.stack.postgres_server import ExistingPostgres

pytestmark = pytest.mark.unit

NO_STRING = "is no connection string of PostgreSQL's"
NO_PORT = "has a port that is not a number from 1 to 65535"
PLAIN = "has a `/` or `@` in its user or password, or an `@` in its database"
NO_VALUE = "has a parameter with a value that libpq does not take"
MISTAKES = {
    "postgresql+psycopg2://u:SECRET@db/shop": NO_STRING,
    "jdbc:postgresql://db/shop?user=u&password=SECRET": NO_STRING,
    "postgresql://u:SECRET%zz@db/shop": NO_STRING,
    "postgresql://u:SECRET%00@db/shop": NO_STRING,
    "postgresql://u:x@db/shop?word=SECRET": NO_STRING,
    "host=db password='SECRET": NO_STRING,
    "postgresql://u:SECRET@db:54 32/shop": NO_PORT,
    "postgresql://u:SECRET@db:70000/shop": NO_PORT,
    "host=db port=0 password=SECRET": NO_PORT,
    "postgresql://u:SECRET/7@db/shop": PLAIN,
    "postgresql://u:7@SECRET@db/shop": PLAIN,
    "postgresql://u:5432/SECRET@db/shop": PLAIN,
    "postgresql://u:x@db/shop?sslmode=SECRET": NO_VALUE,
}


def described(error: BaseException) -> str:
    """Return all that a log would show of an error."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(("dsn", "mistake"), MISTAKES.items())
def test_a_mistake_in_a_connection_string_is_named_without_its_values(dsn: str, mistake: str) -> None:
    with pytest.raises(ConfigurationError) as of_journal:
        open_connection(dsn)
    with pytest.raises(ConfigurationError) as of_point, connect(PostgresConnection(id="shop_db", dsn=dsn)):
        pass

    [problem], [of_connection] = of_journal.value.problems, of_point.value.problems
    assert (problem.file, problem.path, problem.found) == ("environment", "MAKEWHOLE_JOURNAL_DSN", mistake)
    assert (of_connection.file, of_connection.path, of_connection.found) == ("connections", "shop_db", mistake)
    for caught in (of_journal, of_point):
        assert "SECRET" not in described(caught.value)


@pytest.mark.parametrize("dsn", [dsn for dsn, message in MISTAKES.items() if message != NO_VALUE])
def test_what_only_reads_a_connection_string_refuses_it_as_well(dsn: str) -> None:
    with pytest.raises(ConfigurationError) as of_point:
        server_parameters(PostgresConnection(id="shop_db", dsn=dsn))
    with pytest.raises(ConfigurationError, match="environment: MAKEWHOLE_POSTGRES_DSN: ") as of_stack:
        ExistingPostgres(dsn)
    for caught in (of_point, of_stack):
        assert "SECRET" not in described(caught.value)


@pytest.mark.parametrize(
    "dsn", ["postgresql://u%40b:x%2Fy@[::1]:5432/a%40b?application_name=a@b", "host=/run dbname=a@b"]
)
def test_encoded_characters_are_taken(dsn: str) -> None:
    assert server_parameters(PostgresConnection(id="shop_db", dsn=dsn))["dbname"] == "a@b"
