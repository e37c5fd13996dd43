"""Connect to the journal and migrate its schema."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
from psycopg2 import errors

from makewhole.journal.deployment.address import journal_dsn, journal_place
from makewhole.model.closing import ClosingContext
from makewhole.model.errors import ConfigurationError, CorruptionError, Problem, TransientError
from makewhole.postgres_session import open_session
from makewhole.sql import PgConnection, PgCursor, load_queries, sql_root

_STATEMENT_SECONDS = 1_800.0  # far above what any statement here takes, so that none hangs for ever
_MIGRATION_LOCK = 0x6D616B65  # "make": only one process migrates at a time


def open_connection(dsn: str) -> PgConnection:
    """Open a connection to the journal that the caller closes.

    Raises:
        ConfigurationError: the URI cannot be used, or the server refuses the session.
        TransientError: the server cannot be reached.
    """
    return open_session(dsn, journal_place(), application_name="makewhole")


@contextmanager
def connect(dsn: str | None = None) -> Iterator[PgConnection]:
    """Open a connection to the journal that commits when the block ends, rolls back when it raises, and is closed.

    Raises:
        TransientError: the server cannot be reached, or ended the session.
    """
    journal = open_connection(dsn or journal_dsn())
    try:
        _limit_statements(journal)
        with journal:
            yield journal
    except (errors.InsufficientPrivilege, errors.UndefinedTable, errors.UndefinedColumn) as error:
        if error.cursor is not None and error.cursor.connection is not journal:
            raise
        raise ConfigurationError([_unfit_schema(journal, error)]) from error
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        raise TransientError("the session with the journal's PostgreSQL broke; try again") from error
    finally:
        journal.close()


def _unfit_schema(journal: PgConnection, error: psycopg2.Error) -> Problem:
    """Return what is wrong with the schema for the session's user: a right is missing, or a table or column is."""
    found = error.diag.message_primary or type(error).__name__
    if isinstance(error, errors.InsufficientPrivilege):
        user = journal.info.user
        remedy = (
            "Run as the schema's owner what docs/rights.md lists for the journal's application: psql "
            f"-v role={user} -f sql/grants/journal_application.sql"
        )
    else:
        remedy = "The schema is not the one of this makewhole; `makewhole migrate --check` says which it is"
    return Problem(file="journal", path="schema makewhole", found=found, remedy=remedy)


def _limit_statements(journal: PgConnection) -> None:
    """Limit the time of statements of this session, outside of a transaction, so that the limit lasts."""
    journal.autocommit = True
    with journal.cursor() as cursor:
        milliseconds = int(_STATEMENT_SECONDS * 1000)
        cursor.execute(load_queries("lease")["limit_statements"], {"milliseconds": milliseconds})
    journal.autocommit = False


@contextmanager
def transaction(dsn: str, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
    """Run one transaction at the journal on a connection of its own.

    A process that is stopped in the middle of it cannot hold it open: after `idle_seconds` without a statement the
    server ends it, and whoever waits for its locks goes on.

    Raises:
        TransientError: the journal is away, or ended this session.
    """
    with JournalSession(dsn) as kept, kept.transaction(idle_seconds=idle_seconds) as journal:
        yield journal


class JournalSession(ClosingContext):
    """One connection to the journal for many short transactions, opened when it is first needed. A context manager.

    Between transactions it holds nothing, so that it may stay open as long as a runner works.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._journal: PgConnection | None = None
        self._is_kept = False

    def close(self) -> None:
        """End the connection. Safe to call twice."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    @contextmanager
    def transaction(self, *, idle_seconds: float = 5.0) -> Iterator[PgConnection]:
        """Run one transaction, as the function `transaction`. A connection that broke while idle is opened again.

        Raises:
            TransientError: the journal is away, or ended this session.
        """
        try:
            journal = self._begin(idle_seconds)
            with journal:
                yield journal
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            self.close()
            raise TransientError("the session with the journal's PostgreSQL broke; try again") from error

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Go on with this connection alone, whose session holds locks: one that breaks is not opened again meanwhile,
        and every further transaction raises `TransientError`."""
        self._is_kept = True
        try:
            yield
        finally:
            self._is_kept = False

    def _begin(self, idle_seconds: float) -> PgConnection:
        """Begin a transaction, on a new connection where there is none or it broke."""
        if self._journal is not None:
            try:
                return _limit_idle(self._journal, idle_seconds)
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                self.close()
        if self._is_kept:
            raise TransientError(
                "the session with the journal's PostgreSQL broke, and its locks ended with it; try again"
            )
        self._journal = open_connection(self._dsn)
        return _limit_idle(self._journal, idle_seconds)


def _limit_idle(journal: PgConnection, idle_seconds: float) -> PgConnection:
    with journal.cursor() as cursor:
        limits = {"milliseconds": int(idle_seconds * 1000), "statement_milliseconds": int(_STATEMENT_SECONDS * 1000)}
        cursor.execute(load_queries("lease")["limit_idle"], limits)
    return journal


def migrate(dsn: str | None = None) -> list[str]:
    """Bring the journal's schema up to date; harmless when it is. Returns the names of the migrations applied now.

    Raises:
        CorruptionError: a migration that was applied has been edited since.
    """
    applied_now = []
    with connect(dsn) as journal, journal.cursor() as cursor:
        # A new index over a long history takes as long as it takes.
        cursor.execute(load_queries("lease")["limit_statements"], {"milliseconds": 0})
        cursor.execute("select pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        cursor.execute("select to_regclass('makewhole.migration') is not null")
        ((has_journal,),) = cursor.fetchall()
        done = dict(_applied(cursor)) if has_journal else {}
        for path in migration_files():
            version, text = int(path.name[:4]), path.read_text(encoding="utf-8")
            digest = hashlib.sha256(text.encode()).hexdigest()
            if version not in done:
                cursor.execute(text)
                cursor.execute(
                    "insert into makewhole.migration (version, name, sha256) values (%s, %s, %s)",
                    (version, path.stem, digest),
                )
                applied_now.append(path.stem)
            elif done[version] != digest:
                raise CorruptionError(
                    f"migration {path.name} was edited after this journal applied it; "
                    "restore the file and put the change into a new migration"
                )
    return applied_now


def migration_files() -> list[Path]:
    """Return the files of all migrations, in their order."""
    return sorted((sql_root() / "migrations").glob("*.sql"))


def _applied(cursor: PgCursor) -> list[tuple[int, str]]:
    cursor.execute("select version, sha256 from makewhole.migration")
    return [(version, sha256) for version, sha256 in cursor.fetchall()]
