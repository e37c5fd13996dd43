"""Test which errors of PostgreSQL are tried again: those of a list."""

from types import SimpleNamespace

import psycopg2
import pytest
from psycopg2 import errors

from makewhole.postgres.server_errors import describe, is_transient, remedy

pytestmark = pytest.mark.unit


def error(
    code: str | None, kind: type[psycopg2.Error] = psycopg2.Error, *, function: str | None = None, message: str = ""
) -> psycopg2.Error:
    """Return an error with a SQLSTATE, which only the driver itself can set."""

    class Coded(kind):  # type: ignore[misc, valid-type]
        pgcode = code
        diag = SimpleNamespace(
            constraint_name=None,
            column_name="amount",
            table_name="orders",
            source_function=function,
            message_primary=message,
        )

    return Coded("a row: secret")


@pytest.mark.parametrize(
    ("code", "is_again"),
    [
        ("08006", True),
        ("40P01", True),
        ("53300", True),
        ("55P03", True),
        ("57014", True),
        ("57P01", True),
        ("58030", True),
        ("25P03", True),
        ("22P02", False),
        ("22003", False),
        ("42501", False),
        ("42883", False),
        ("54001", False),
        ("55000", False),
        ("57P04", False),
        ("HV000", False),
        ("XX000", False),
    ],
)
def test_only_what_may_be_over_is_tried_again(code: str, is_again: bool) -> None:
    assert is_transient(error(code, psycopg2.OperationalError), is_closed=False) is is_again


def test_a_session_that_ended_without_a_code_is_tried_again() -> None:
    assert is_transient(error(None, psycopg2.DatabaseError), is_closed=True)
    assert not is_transient(error(None, psycopg2.InterfaceError), is_closed=False)
    assert is_transient(error(None, psycopg2.OperationalError), is_closed=False)


def test_an_error_names_what_it_is_about_and_quotes_nothing() -> None:
    assert describe(error("22P02")) == "Coded (22P02): column amount, table orders"
    assert "GRANT SELECT" in remedy(error("42501"))
    denied = error("42501", message="permission denied for schema shop")
    assert "Run as its owner: grant usage on schema shop to anna (" in remedy(denied, "anna")
    assert "bypassrls" in remedy(error("42501", function="check_enable_rls"))
    assert "check --tables" in remedy(error("42883"))
    assert issubclass(errors.InsufficientPrivilege, psycopg2.Error)
