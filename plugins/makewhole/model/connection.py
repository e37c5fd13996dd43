"""Describe connections to systems. Resolved where they are used, by their id; passed down, never logged, never sent to
another process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn


class _StaysHere:
    """A holder of secrets that cannot be pickled: tasks travel as pickles, and are kept in places that others read."""

    id: str

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the connection {self.id} holds secrets and does not travel; send its id instead")


@dataclass(frozen=True, kw_only=True)
class KafkaConnection(_StaysHere):
    """A connection to a Kafka. `properties` are librdkafka's names (`bootstrap.servers`, `security.protocol`,
    `sasl.*`, `ssl.*`)."""

    id: str
    properties: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True, kw_only=True)
class PostgresConnection(_StaysHere):
    """A connection to a PostgreSQL database. `dsn` is a libpq connection string or URI.

    A statement that takes longer than `statement_seconds` is ended by the server, unless the `options` of `dsn` say
    another limit.
    """

    id: str
    dsn: str = field(repr=False)
    statement_seconds: float = 86_400.0


@dataclass(frozen=True, kw_only=True)
class ObjectStoreConnection(_StaysHere):
    """A connection to an object store that speaks S3. Without keys, the SDK's own chain finds them. `settings`:
    `region`, `endpoint_url`, `session_token`, `role_arn`, `external_id`."""

    id: str
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    settings: Mapping[str, str] = field(repr=False)


Connection = KafkaConnection | PostgresConnection
