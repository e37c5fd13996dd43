"""Describe connections to systems. Resolved by the orchestration or the command line, passed down, never logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class KafkaConnection:
    """A connection to a Kafka. `properties` are librdkafka's names (`bootstrap.servers`, `security.protocol`,
    `sasl.*`, `ssl.*`)."""

    id: str
    properties: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True, kw_only=True)
class PostgresConnection:
    """A connection to a PostgreSQL database. `dsn` is a libpq connection string or URI.

    A statement that takes longer than `statement_seconds` is ended by the server, unless the `options` of `dsn` say
    another limit.
    """

    id: str
    dsn: str = field(repr=False)
    statement_seconds: float = 86_400.0


Connection = KafkaConnection | PostgresConnection
