"""Decide from how a COPY ended whether its rows are all there: what was sent and what arrived must agree."""

from dataclasses import dataclass

import psycopg2

from makewhole.model.errors import TransientError
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class CopyEnd:
    """The end of a COPY of a table's rows: what the database says it sent, what arrived, and what went wrong.

    `has_end`: the stream itself said that it is at its end, where its format can.
    """

    table: str
    sent_rows: int
    arrived_rows: int
    problem: Exception | None
    has_end: bool = True

    def require_whole(self, session: PgConnection) -> None:
        """Raise unless all rows have arrived.

        Raises:
            TransientError: the connection broke, or fewer rows arrived than were sent.
        """
        if isinstance(self.problem, psycopg2.Error) and self.problem.pgcode and not session.closed:
            raise self.problem  # the server refused a value, the connection did not break: `connect` says which
        if self.problem is not None or not self.has_end:
            raise TransientError(
                f"reading {self.table} broke off after {self.arrived_rows} rows; nothing of it was kept, try again"
            ) from self.problem
        if self.arrived_rows != self.sent_rows:
            raise TransientError(
                f"{self.table}: {self.sent_rows} rows were sent and {self.arrived_rows} arrived; try again"
            )
