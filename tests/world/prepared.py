"""Leave transactions prepared, as a sink does that commits in two phases, and settle them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest

from tests.world.sql import run_sql

Statement = tuple[str, tuple[Any, ...]]


@dataclass(kw_only=True)
class PreparedTransactions:
    """The prepared transactions of a database."""

    dsn: str

    def prepare(self, gid: str, *statements: str | Statement) -> None:
        """Run statements in a transaction, and prepare it under a name."""
        with closing(psycopg2.connect(self.dsn)) as session:
            session.tpc_begin(gid)
            with session.cursor() as cursor:
                for statement in statements:
                    text, values = (statement, ()) if isinstance(statement, str) else statement
                    cursor.execute(text, values)
            session.tpc_prepare()

    def commit(self, gid: str) -> None:
        """Commit one of them."""
        self._settle("commit", gid)

    def roll_back(self, gid: str) -> None:
        """Roll one of them back."""
        self._settle("rollback", gid)

    def roll_all_back(self) -> None:
        """Roll all of the database's back: it could not be dropped else."""
        for (gid,) in run_sql(self.dsn, "select gid from pg_prepared_xacts where database = current_database()"):
            self.roll_back(gid)

    def _settle(self, how: str, gid: str) -> None:
        with closing(psycopg2.connect(self.dsn)) as session, session.cursor() as cursor:
            session.autocommit = True
            cursor.execute(f"{how} prepared %s", (gid,))


@contextmanager
def prepared_transactions(dsn: str) -> Iterator[PreparedTransactions]:
    """Yield the prepared transactions of a database, and roll back at the end what is left of them."""
    if run_sql(dsn, "show max_prepared_transactions") == [("0",)]:
        pytest.skip("the server takes no prepared transactions (max_prepared_transactions is 0)")
    made = PreparedTransactions(dsn=dsn)
    try:
        yield made
    finally:
        made.roll_all_back()
