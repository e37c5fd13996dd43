"""Read and check the options of the `kafka_log` data source: every problem at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql.types import StructType

from makewhole.config.connections import from_environment
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, Problem

COLUMNS = {
    "partition": "int",
    "offset": "bigint",
    "leader_epoch": "int",
    "timestamp": "timestamp",
    "timestamp_type": "tinyint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "producer_id": "bigint",
    "producer_epoch": "smallint",
    "sequence": "int",
    "is_transactional": "boolean",
    "is_replayed": "boolean",
}
"""All columns in order, with their types in Spark SQL."""

AskedOffsets = Mapping[int, int]
_RECORDS_PER_PARTITION = 5_000_000
_PAGE_BYTES = 8 << 20
_EARLIEST, _LATEST = "earliest", "latest"
# Spark hands option names over in lower case.
_OWN = {
    "topic",
    "archive",
    "path",
    "connection",
    "columns",
    "startingoffsets",
    "endingoffsets",
    "recordsperpartition",
    "pagebytes",
    "checkcrcs",
    "failondataloss",
}


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The options of a query. `starting` and `ending` are None for the beginning and the stable end of the log.

    With a `connection_id` there are no `properties`: who reads looks the connection up on its own machine.
    """

    topic: str | None
    archive: str | None
    connection_id: str | None
    properties: Mapping[str, str] = field(repr=False)
    columns: Sequence[str]
    starting: AskedOffsets | None
    ending: AskedOffsets | None
    records_per_partition: int
    page_bytes: int
    is_crc_checked: bool
    fails_on_data_loss: bool

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType | None = None) -> Self:
        """Read the options of a query, and the schema that it was given or that was made of them.

        Raises:
            ConfigurationError: names every option that is missing or cannot be understood; never their values.
        """
        reader = _OptionReader({name.lower(): value for name, value in options.items()})
        archive = reader.given.get("archive") or reader.given.get("path")
        properties = {name.removeprefix("kafka."): value for name, value in reader.given.items() if name not in _OWN}
        if archive is None:
            reader.require("topic", reader.given)
            reader.require_cluster(properties)
        read = cls(
            topic=reader.given.get("topic"),
            archive=archive,
            connection_id=reader.given.get("connection"),
            properties=properties,
            columns=reader.columns(schema),
            starting=reader.offsets("startingOffsets", _EARLIEST),
            ending=reader.offsets("endingOffsets", _LATEST),
            records_per_partition=reader.number("recordsPerPartition", _RECORDS_PER_PARTITION),
            page_bytes=reader.number("pageBytes", _PAGE_BYTES),
            is_crc_checked=reader.switch("checkCrcs"),
            fails_on_data_loss=reader.switch("failOnDataLoss"),
        )
        if reader.problems:
            raise ConfigurationError(reader.problems)
        return read

    @property
    def connection(self) -> KafkaConnection:
        """The connection, as this machine knows it.

        Raises:
            ConfigurationError: it is not known here, or is none to a Kafka.
        """
        if self.connection_id is not None:
            connection = from_environment(self.connection_id)
            if not isinstance(connection, KafkaConnection):
                remedy = "Name one of conn_type kafka"
                problem = Problem(file="kafka_log", path="connection", found="leads to no Kafka", remedy=remedy)
                raise ConfigurationError([problem])
            return connection
        return KafkaConnection(id="kafka_log", properties=self.properties)


class _OptionReader:
    """A reader of options that collects the problems in them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given
        self.problems: list[Problem] = []

    def _problem(self, path: str, found: str, remedy: str) -> None:
        self.problems.append(Problem(file="kafka_log", path=path, found=found, remedy=remedy))

    def require(self, name: str, options: Mapping[str, str]) -> None:
        if not options.get(name):
            self._problem(
                name, "is not set", f'Add .option("{name}", …), or read an archive with .option("archive", …)'
            )

    def require_cluster(self, properties: Mapping[str, str]) -> None:
        """Require a connection or the properties of one, and not both."""
        if "connection" not in self.given:
            self.require("bootstrap.servers", properties)
        elif properties:
            found = f"stands beside {', '.join(sorted(properties))}"
            self._problem("connection", found, "Leave these out: they are those of the connection")

    def columns(self, schema: StructType | None) -> list[str]:
        if schema is not None:
            for column, kind in ((field.name, field.dataType.simpleString()) for field in schema.fields):
                if COLUMNS.get(column) != kind:
                    self._problem("schema", f"has a column {column} {kind}", _schema_remedy())
            return schema.fieldNames()
        names = [name.strip() for name in self.given.get("columns", ",".join(COLUMNS)).split(",")]
        if unknown := [name for name in names if name not in COLUMNS]:
            self._problem("columns", f"has {', '.join(map(repr, unknown))}", f"Choose from {', '.join(COLUMNS)}")
        return [name for name in names if name in COLUMNS]

    def offsets(self, option: str, default: str) -> AskedOffsets | None:
        text = self.given.get(option.lower(), default)
        if text.lower() == default:
            return None
        try:
            asked = {int(partition): int(offset) for partition, offset in json.loads(text).items()}
        except (ValueError, AttributeError, TypeError):
            asked = {-1: -1}
        if any(partition < 0 or offset < 0 for partition, offset in asked.items()):
            self._problem(option, "cannot be read", f'Write `{default}`, or JSON like {{"0": 23}}: partition to offset')
        return asked

    def number(self, option: str, default: int) -> int:
        text = self.given.get(option.lower(), str(default))
        if text.isdecimal() and int(text) > 0:
            return int(text)
        self._problem(option, "is no positive number", f"Write a whole number such as {default}")
        return default

    def switch(self, option: str) -> bool:
        text = self.given.get(option.lower(), "true").lower()
        if text not in ("true", "false"):
            self._problem(option, "is neither true nor false", "Write `true` or `false`")
        return text != "false"


def _schema_remedy() -> str:
    return "Use columns as they are: " + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
