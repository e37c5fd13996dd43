"""How to reach a system. Resolved by the orchestration or the command line, passed down, never logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class KafkaConnection:
    """`properties` are librdkafka's names (`bootstrap.servers`, `security.protocol`, `sasl.*`, `ssl.*`)."""

    id: str
    properties: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True, kw_only=True)
class PostgresConnection:
    """`dsn` is a libpq connection string or URI."""

    id: str
    dsn: str = field(repr=False)


Connection = KafkaConnection | PostgresConnection
