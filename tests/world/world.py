"""Give a test its systems: a Kafka, a database of people's, and a journal."""

from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.world.consumer import Record, read_settled
from tests.world.sql import Rows, run_sql
from tests.world.topics import admin_client


@dataclass(kw_only=True)
class World:
    """Where the systems are: Kafka's `bootstrap`, and the URIs of the databases. Each suite puts its own on top."""

    bootstrap: str
    dsn: str
    journal: str

    def sql(self, statement: str, *parameters: Any) -> Rows:
        """Run plain SQL in the database."""
        return run_sql(self.dsn, statement, *parameters)

    def journal_sql(self, statement: str, *parameters: Any) -> Rows:
        """Run plain SQL in the journal."""
        return run_sql(self.journal, statement, *parameters)

    @property
    def admin(self) -> AdminClient:
        """A client for what is done to topics."""
        return admin_client(self.bootstrap)

    def records(self, topic: str) -> list[Record]:
        """Read what a read_committed consumer sees of a topic when its transactions have ended."""
        return read_settled(self.bootstrap, topic)
