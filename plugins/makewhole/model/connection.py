"""Describe connections to systems. Resolved where they are used, by their id; passed down, never logged, never sent to
another process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Self

from makewhole.model.errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A connection to a system. It holds secrets, and cannot be pickled: tasks travel as pickles, and are kept where
    others read them."""

    id: str

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the connection {self.id} holds secrets and does not travel; send its id instead")

    def limited(self, statement_seconds: float) -> Self:  # noqa: ARG002 - not every system ends what takes long
        """Return the connection with this limit on what one request may take, where its system knows limits."""
        return self


@dataclass(frozen=True, kw_only=True)
class KafkaConnection(Connection):
    """A connection to a Kafka. `properties` are librdkafka's names (`bootstrap.servers`, `security.protocol`,
    `sasl.*`, `ssl.*`)."""

    properties: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]


@dataclass(frozen=True, kw_only=True)
class PostgresConnection(Connection):
    """A connection to a PostgreSQL database. `dsn` is a libpq connection string or URI.

    A statement that takes longer than `statement_seconds` is ended by the server, unless the `options` of `dsn` say
    another limit.
    """

    dsn: str = field(repr=False)
    statement_seconds: float = 86_400.0

    def limited(self, statement_seconds: float) -> Self:
        return replace(self, statement_seconds=statement_seconds)


@dataclass(frozen=True, kw_only=True)
class ObjectStoreConnection(Connection):
    """A connection to an object store that speaks S3. Without keys, the SDK's own chain finds them. `settings`:
    `region`, `endpoint_url`, `session_token`, `role_arn`, `external_id`."""

    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class FolderConnection(Connection):
    """A connection to a folder of this machine, or of a file system that all machines mount."""

    path: str


@dataclass(frozen=True, kw_only=True)
class HdfsConnection(Connection):
    """A connection to HDFS. `address` is `host:port` of the NameNode, or a name service; `properties` are those of
    Hadoop's clients (`dfs.*`, `hadoop.*`)."""

    address: str
    properties: Mapping[str, str] = field(repr=False)

    @property
    def url(self) -> str:
        """The address as clients name it."""
        return f"hdfs://{self.address}"


@dataclass(frozen=True, kw_only=True)
class IcebergConnection(Connection):
    """A connection to a catalogue of Iceberg tables. `catalog` is its name; `properties` are pyiceberg's (`type`,
    `uri`, `warehouse`, `s3.*`, …), secrets among them."""

    catalog: str
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class RegistryConnection(Connection):
    """A connection to a schema registry. `ca_file`: certificates by which its own is checked; None: the usual ones."""

    url: str
    login: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None


def registry_of(connection: Connection) -> RegistryConnection:
    """Return a connection as that to a schema registry.

    Raises:
        RefusedError: it leads to another system.
    """
    if not isinstance(connection, RegistryConnection):
        raise RefusedError(f"connection {connection.id} leads to no schema registry; name one of type http or https")
    return connection


def kafka_of(connection: Connection) -> KafkaConnection:
    """Return a connection as that to a Kafka.

    Raises:
        RefusedError: it leads to another system.
    """
    if not isinstance(connection, KafkaConnection):
        raise RefusedError(f"connection {connection.id} leads to no Kafka; name another one")
    return connection
