"""Make, fill, spoil, read and purge the tables that a self-check plants faults in."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import RefusedError
from makewhole.model.self_check.planted import Discrepancy, keys_of
from makewhole.model.self_check.settings import STORE_HOP
from makewhole.model.verdict import Verdict
from makewhole.postgres.connect import connect
from makewhole.sql import PgConnection, load_queries, named_rows, single_value

WITH_OTHER_NAMES = (
    "begin again with a pipeline file of another name, with another `topic` and another `schema`: what the windows of "
    "this one were judged on is not there any more"
)
"""The remedy where scratch objects were taken away."""


@dataclass(frozen=True, kw_only=True)
class ScratchRow:
    """A row that is sent and stored: its key, its value, the record of it, and its time."""

    key: str
    amount: Decimal
    sent_at: datetime
    payload: str = ""


@dataclass(frozen=True, kw_only=True)
class ScratchTables:
    """The tables of a self-check in a schema of their own."""

    connection: PostgresConnection
    schema: str

    def make(self, mark: str, *, is_known: bool) -> None:
        """Make schema and tables where they are not there. `mark` says whose they are, as the comment of the schema;
        `is_known`: they were there before.

        Raises:
            RefusedError: the schema has something else in it, or is gone though it was there before.
        """
        with self._session() as session:
            marks = self._run(session, "schema_mark", name=self.schema)
            if marks and marks[0].mark == mark:
                return
            if is_known:
                self._refuse("is gone, or another one has its name, since the self-check made it", WITH_OTHER_NAMES)
            if marks and (marks[0].relations or marks[0].mark or not marks[0].is_owned):
                self._refuse("is there already and is not of this self-check", "name another `schema`")
            if not marks:
                self._run(session, "create_schema")
            self._run(session, "create_tables", mark=mark)

    def known_topic(self, name: str) -> tuple[bool, str | None]:
        """Return whether a topic was begun to be made for this self-check, and its id when it was made."""
        with self._session() as session:
            rows = self._run(session, "known_topic", name=name)
        return bool(rows), rows[0].topic_id if rows else None

    def note_topic(self, name: str, topic_id: str | None) -> None:
        """Note that a topic is made for this self-check; its id when it is."""
        with self._session() as session:
            self._run(session, "put_topic", name=name, topic_id=topic_id)

    def send(self, rows: Sequence[ScratchRow], at: datetime) -> None:
        """Write rows into the ledger, all with one time; those that are there get it."""
        ids, amounts = [row.key for row in rows], [row.amount for row in rows]
        with self._session() as session:
            self._run(session, "send", ids=ids, amounts=amounts, payloads=[row.payload for row in rows], at=at)

    def load(self, rows: Sequence[ScratchRow]) -> None:
        """Write rows into the store, each key once, as a loader does."""
        ids, times = [row.key for row in rows], [row.sent_at for row in rows]
        with self._session() as session:
            self._run(session, "load", ids=ids, times=times, amounts=[row.amount for row in rows])

    def spoil(self, name: str, planted: Sequence[Discrepancy], at: datetime) -> bool:
        """Plant the faults of a round in the store, once, all in one transaction; return whether it was now."""
        with self._session() as session:
            if not self._run(session, "begin_spoiling", round=name, at=at):
                return False
            for statement, verdict in (
                ("lose", Verdict.MISSING),
                ("repeat", Verdict.DUPLICATE),
                ("change", Verdict.MISMATCHED),
                ("invent", Verdict.UNEXPECTED),
            ):
                self._run(session, statement, ids=keys_of(planted, STORE_HOP, verdict), at=at)
        return True

    def stored_of(self, name: str) -> list[tuple[str, Decimal]]:
        """Return key and value of the rows of a round in the store, one for each row."""
        with self._session() as session:
            rows = self._run(session, "rows_of_round", begin=f"{name}-")
        return [(row.id, Decimal(row.amount)) for row in rows]

    def purge(self, before: datetime) -> int:
        """Remove what is older than a moment; return how many rows went."""
        with self._session() as session:
            return int(single_value(self._run(session, "purge", before=before)))

    @contextmanager
    def _session(self) -> Iterator[PgConnection]:
        with connect(self.connection, f"working on the self-check's schema {self.schema}") as session:
            yield session

    def _run(self, session: PgConnection, statement: str, /, **values: Any) -> list[Any]:
        text = sql.SQL(load_queries("scratch")[statement]).format(schema=sql.Identifier(self.schema))
        with session.cursor() as cursor:
            cursor.execute(text, values)
            return named_rows(cursor)

    def _refuse(self, what: str, remedy: str) -> None:
        raise RefusedError(f"schema {self.schema} of connection {self.connection.id} {what}; {remedy}")
