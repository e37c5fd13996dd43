"""Hold what a case is made of: the servers, databases, topic and folders, and what its plan writes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

from psycopg2.extensions import parse_dsn

from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.model.connection import (
    Connection,
    FolderConnection,
    IcebergConnection,
    KafkaConnection,
    PostgresConnection,
)


class Writes(StrEnum):
    """What the plan of a case writes to."""

    TOPIC_AND_TABLE = "a topic and a table"
    TABLE = "a table"
    DATASETS = "an Iceberg table and a dataset of files"
    AVRO = "a topic of Avro"
    PROTOBUF = "a topic of Protobuf"
    CONNECT = "a topic of Connect's values"


MADE = (Writes.AVRO, Writes.PROTOBUF, Writes.CONNECT)
"""Plans whose records are made: of rows of a ledger, and as reversals."""


@dataclass(frozen=True, kw_only=True)
class CaseSettings:
    """The servers, databases and topic of a case, and the pipeline that is its own. `lake` is the folder of its
    datasets; `application`: who asks their catalogue."""

    bootstrap: str
    client_id: str
    journal: str
    target: str
    topic: str
    storage: str
    lake: str
    pipeline: str
    writes: str = Writes.TOPIC_AND_TABLE
    application: str = "enumeration"
    marker_topic: str = MARKER_TOPIC
    holder: str = ""
    lease_seconds: float = 30.0
    plan: str = ""
    sha256: str = ""
    revision: int = 1

    @property
    def identity(self) -> str:
        """The transactional id and the group of the plan's marker."""
        return f"replay-{self.plan}-flights"

    def connections(self) -> Mapping[str, Connection]:
        """Return those to all systems, by the ids that the pipeline has for them."""
        kafka: Mapping[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": self.client_id,
            "log_level": "0",
        }
        return {
            "kafka": KafkaConnection(id="kafka", properties=kafka),
            "pg": PostgresConnection(id="pg", dsn=self.target),
            "lake": IcebergConnection(id="lake", catalog="default", properties=self.catalog()),
            "folder": FolderConnection(id="folder", path=self.lake),
        }

    def catalog(self) -> dict[str, str]:
        """Return the properties of the catalogue, whose tables are in the target's database."""
        parts = parse_dsn(self.target)
        login = f"{quote(parts['user'])}:{quote(parts.get('password', ''))}"
        options = [(name, parts[name]) for name in ("sslmode", "gssencmode") if name in parts]
        asked = urlencode([*options, ("application_name", self.application)])
        address = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
        uri = f"postgresql+psycopg2://{login}@{address}?{asked}"
        return {"type": "sql", "uri": uri, "warehouse": f"file://{self.lake}/warehouse"}
