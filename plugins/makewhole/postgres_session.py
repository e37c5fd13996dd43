"""Open a session with a PostgreSQL. A server that is away is asked again; a session that it refuses, and a connection
string that cannot be used, are for a person to correct.

No message has a value of a connection string in it: what follows a mistake in one may be a part of its password.
"""

import ctypes
import re
import select
import time
from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import _psycopg
from psycopg2.extensions import POLL_OK, POLL_READ, parse_dsn

from makewhole.model.errors import ConfigurationError, Problem, TransientError
from makewhole.sql import PgConnection

_DEFAULTS = {
    "connect_timeout": 10,
    # A server that went away without a word is noticed after two minutes, not after the two hours of the kernel.
    "keepalives_idle": 60,
    "keepalives_interval": 10,
    "keepalives_count": 6,
}
_FORM = (
    "Write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with the special characters of each part "
    "percent-encoded"
)

# SQLSTATE classes and codes of what may be over when it is tried again. What is not listed stays as it is.
# Source: https://www.postgresql.org/docs/16/errcodes-appendix.html
_TRANSIENT_CLASSES = (
    "08",  # connection exception
    "40",  # transaction rollback: a deadlock, a serialization failure
    "53",  # insufficient resources: no more connections, disk full, out of memory
    "58",  # system error: input or output failed
)
_TRANSIENT_CODES = (
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "55006",  # object_in_use
    "55P03",  # lock_not_available
    "57014",  # query_canceled
    "57P01",  # admin_shutdown
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
)
_REFUSALS = {
    "28P01": ("the server refuses the user or its password", "Correct login and password"),
    "28000": (
        "the server lets no such user log in, or not from this host, to this database or in this way (TLS)",
        "Correct the login, or add the user to the server (`create role … login`) and the way to its pg_hba.conf",
    ),
    "3D000": ("the server has no database of this name", "Correct the name of the database, or create it"),
    "42501": (
        "the server gives its user no right to this database",
        "Run as its owner: grant connect on database … to the user",
    ),
}
"""Reasons for which a server refuses a session, each with what to do, by SQLSTATE."""
_OTHER_REFUSAL = ("the server refuses the session", "The log of the server has its words; correct what they name")
_BY_SERVER = re.compile(r":  \S")
"""The sign that libpq quotes the server: two spaces stand between the severity, in any language, and the message."""
_CODE = re.compile(r":  (?P<code>[0-9A-Z]{5})$")
_NO_VALUE = re.compile(r"invalid |definition of service ")
"""libpq's words on a parameter, before any server is asked."""
_CODES_ALONE = 3  # PQERRORS_SQLSTATE of libpq's `PGVerbosity`
_SECONDS = 10.0
_LAST_PORT = 65_535


@dataclass(frozen=True, kw_only=True)
class DsnPlace:
    """The place where a connection string is described, and the message where its server does not answer."""

    file: str
    path: str
    silent: str

    def problem(self, found: str, remedy: str) -> ConfigurationError:
        """Return what is wrong with it as an error."""
        return ConfigurationError([Problem(file=self.file, path=self.path, found=found, remedy=remedy)])


def is_transient_code(code: str) -> bool:
    """Return whether what has this SQLSTATE may be over when it is tried again."""
    return code.startswith(_TRANSIENT_CLASSES) or code in _TRANSIENT_CODES


def connection_defaults(given: Container[str]) -> dict[str, Any]:
    """Return libpq's parameters that makewhole chooses where those that are `given` say nothing of them."""
    return {name: value for name, value in _DEFAULTS.items() if name not in given}


def parameters_of(dsn: str, place: DsnPlace) -> dict[str, str]:
    """Return the parameters of a connection string.

    Raises:
        ConfigurationError: it is none, or has a port that is none.
    """
    if _has_plain_separators(dsn):
        raise place.problem("has a `/` or `@` in its user or password, or an `@` in its database", _FORM)
    try:
        given: dict[str, str] = parse_dsn(dsn)
    except psycopg2.ProgrammingError:
        raise place.problem("is no connection string of PostgreSQL's", _FORM) from None
    if not all(_is_port(port) for port in given.get("port", "").split(",") if port):
        raise place.problem("has a port that is not a number from 1 to 65535", _FORM)
    return given


def _has_plain_separators(dsn: str) -> bool:
    """Return whether a URI is divided elsewhere than its author expects: a part of a password would be an address."""
    scheme, is_uri, rest = dsn.partition("://")
    if not is_uri or scheme not in ("postgresql", "postgres"):
        return False
    server, _, database = rest.partition("?")[0].partition("/")
    return server.count("@") > 1 or "@" in database


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) <= _LAST_PORT


def open_session(dsn: str, place: DsnPlace, **parameters: Any) -> PgConnection:
    """Open a session that the caller closes. `parameters` are libpq's and psycopg2's, besides those of the string.

    Raises:
        ConfigurationError: the string cannot be used, or the server refuses the session by it.
        TransientError: the server cannot be reached, or takes no session now.
    """
    given = parameters_of(dsn, place)
    try:
        session: PgConnection = psycopg2.connect(dsn, **parameters, **connection_defaults(given))
    except psycopg2.OperationalError as error:
        if _NO_VALUE.match(str(error)):
            raise place.problem("has a parameter with a value that libpq does not take", _FORM) from None
        raise refusal(dsn, place, error) or TransientError(place.silent) from error
    return session


def refusal(dsn: str, place: DsnPlace, error: Exception) -> ConfigurationError | None:
    """Return why a session by this string, which ended in an error of psycopg2's, is refused until a person corrects
    something; None: it may open when it is asked for again."""
    if "no password supplied" in str(error):
        return place.problem("has no password, and the server asks for one", "Give it one")
    code = _code_of_refusal(dsn) if _BY_SERVER.search(str(error)) else None
    if code is None:
        return None
    found, remedy = _REFUSALS.get(code, _OTHER_REFUSAL)
    return place.problem(f"{found} (SQLSTATE {code})", remedy)


def _code_of_refusal(dsn: str) -> str | None:
    """Ask the server once more; return the SQLSTATE by which it refuses the session until a person corrects something.
    None: it does not, or that cannot be known.

    psycopg2 gives a failed connection no SQLSTATE, and the server's words are in the server's language. libpq leaves
    the words out and the code in when a connection is set to it between its beginning and its end.
    """
    set_verbosity = getattr(ctypes.CDLL(_psycopg.__file__), "PQsetErrorVerbosity", None)
    if set_verbosity is None:
        return None
    set_verbosity.argtypes = [ctypes.c_void_p, ctypes.c_int]
    try:
        with closing(psycopg2.connect(dsn, async_=True)) as session:
            set_verbosity(session.pgconn_ptr, _CODES_ALONE)
            _wait(session)
    except psycopg2.Error as error:
        tries = str(error).strip().splitlines()  # one for each server that is named, with and without TLS
        codes = [match["code"] for match in map(_CODE.search, tries) if match is not None]
        is_refused = len(codes) == len(tries) and not any(map(is_transient_code, codes))
        return codes[-1] if codes and is_refused else None
    return None


def _wait(session: PgConnection) -> None:
    """Wait until a session is open, but not for ever."""
    end = time.monotonic() + _SECONDS
    while (state := session.poll()) != POLL_OK and time.monotonic() < end:
        waits = [session.fileno()]
        select.select(waits if state == POLL_READ else [], waits if state != POLL_READ else [], [], _SECONDS)
