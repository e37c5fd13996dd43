"""Describe the points of a pipeline: tables and topics, as its file has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs

IN_DOCUMENT = "in_document"
WRITTEN_IF_ANY: Mapping[str, str] = {IN_DOCUMENT: "if any"}
NEVER_WRITTEN: Mapping[str, str] = {IN_DOCUMENT: "never"}
"""Metadata of fields that the document of a configuration has only where they are set, or never has."""


class PointKind(StrEnum):
    """The kind of system a point is in: decides how it is read and what can be done to it."""

    LEDGER = "ledger"
    TOPIC = "topic"
    STORE = "store"


class KeyType(StrEnum):
    """The type of one part of a business key: what makes two spellings one key. `STRING`: each spelling is its own."""

    STRING = "string"
    CHAR = "char"
    BIGINT = "bigint"
    DECIMAL = "decimal"
    UUID = "uuid"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INET = "inet"


class Partitioner(StrEnum):
    """The rule by which producers of a topic choose a partition: Java's default, librdkafka's default, or by chance."""

    MURMUR2 = "murmur2"
    CRC32 = "crc32"
    RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class Erased:
    """The keys of a store that were deleted on purpose: those that `table` names in its columns `key`, in the same
    database, those whose rows have a value in `column`, or those of which a tombstone is in one of `topics` (topic
    points), behind their last record. One of the three is set."""

    table: str | None = None
    key: tuple[str, ...] = ()
    column: str | None = None
    topics: tuple[str, ...] = field(default=(), metadata=WRITTEN_IF_ANY)

    @property
    def description(self) -> str:
        """Return what says so, for messages. Of a tombstone the place is known besides."""
        if self.topics:
            return "a tombstone deletes this key"
        return f"{self.table} names this key" if self.table else f"its row has a value in {self.column}"


class OffsetMeaning(StrEnum):
    """Name what the offset in a sink's own progress is: of the record that it reads `next`, or of the `last` one that
    is in its store."""

    NEXT = "next"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class SinkProgress:
    """The table in which a sink keeps how far it has come in a topic, in the database of its store: its columns with
    the partition and the offset, and what the offset means.

    `topic` is the column with the topic's name; None: all rows are of the topic. `where` narrows the rows to those of
    the sink: `column = literal` terms joined by `and`.
    """

    table: str
    partition: str
    offset: str
    means: OffsetMeaning = OffsetMeaning.NEXT
    topic: str | None = None
    where: str | None = None

    @property
    def text(self) -> str:
        """Name what is read, for messages; another text is another progress."""
        meaning = "" if self.means is OffsetMeaning.NEXT else ", the last one done"
        return f"{self.offset} of {self.table}{f' where {self.where}' if self.where else ''}{meaning}"

    def rows_of(self, topic: str, partition: int) -> str:
        """Return the condition by which a person finds the rows of a partition."""
        quoted = topic.replace("'", "''")
        terms = [f"{self.partition} = {partition}", *([f"{self.topic} = '{quoted}'"] if self.topic else [])]
        return " and ".join([*terms, *([self.where] if self.where else [])])


@dataclass(frozen=True, kw_only=True)
class TablePoint:
    """A table: the ledger of the producer, or a downstream store.

    `key` names one or more columns, compared in this order. `time` is the column that labels a row with a moment
    (timestamp or timestamptz, read as UTC); a store without it is read by the window's keys only and cannot have
    `unexpected` rows. `payload` (ledger) is the column with the record value to produce, as JSON; without it the whole
    row becomes the JSON object. `record_key` (ledger) is the column with Kafka's record key; default: the business key.
    `headers` (ledger) are those of its records, by name: a column, or a text in single quotes; `leave_headers` names
    those that produced records go without, and `leave_fields` fields of values that may be other than in the topic.
    `key_types` is what the file says of the key's parts. `key_layout` is by what a window reads them, on every point of
    a hop the same; it is none of the file's, and empty means texts as they are. `identity` is none of the file's
    either: what the table is, whatever connection or point is called; empty where no window was opened. Nor is
    `version_unit`: how far apart two versions in its column are at least (a moment counts microseconds).
    `erased` (store) says which keys were deleted on purpose.
    """

    name: str
    kind: PointKind
    connection: str
    table: str
    key: tuple[str, ...]
    time: str | None = None
    version: str | None = None
    payload: str | None = None
    record_key: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    leave_headers: tuple[str, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    leave_fields: tuple[str, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    key_types: tuple[KeyType, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    key_layout: tuple[KeyType, ...] = field(default=(), metadata=NEVER_WRITTEN)
    identity: str = field(default="", metadata=NEVER_WRITTEN)
    version_unit: Decimal = field(default=Decimal(0), metadata=NEVER_WRITTEN)
    erased: Erased | None = None

    @property
    def connections(self) -> tuple[str, ...]:
        """Return the ids of all connections that it needs."""
        return (self.connection,)

    @property
    def header_columns(self) -> tuple[str, ...]:
        """The columns that hold headers of its records."""
        return tuple(source for _, source in self.headers if not source.startswith("'"))

    @property
    def place(self) -> str:
        """Table and connection: what a plan is bound to, whatever the point is called."""
        return f"{self.connection}:{self.table}"

    @property
    def places(self) -> frozenset[str]:
        """Return what its place is known by: its name there, and what it is."""
        return frozenset({self.place, self.identity} - {""})


VALUE_FORMATS: Mapping[str, bool] = {
    "json": True,
    "avro": True,
    "protobuf": True,
    "json_in_string": True,
    "connect": False,
    "debezium": False,
    "string": False,
    "bytes": False,
}
"""The formats of record values, as a pipeline file names them, and whether records can be made in them; the first is
the default."""
EVENT_FORMATS = ("debezium",)
"""Those whose values are events that carry a row."""
WHOLE_FORMATS = ("string", "bytes")
"""Those whose values have one field, `value`: the whole."""
RECORD_KEYS = ("string", "json", "connect", "bytes")
"""The formats of record keys, as a pipeline file names them; the first is the default, in which records can be made."""
KEYS_WITH_FIELDS = ("json", "connect")
"""Those whose keys can have fields."""


@dataclass(frozen=True, kw_only=True)
class ValueSchema:
    """What describes the values of a topic: a registry, by which each names its own schema, or one schema for all.

    `registry`: the connection. `subject`: that of the topic's values; empty: the topic's name and `-value`. `text`: the
    one schema, of Protobuf a descriptor set in base64. `message`: which one of a descriptor set; empty: its first.
    """

    registry: str | None = None
    subject: str = ""
    text: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class TopicPoint:
    """A Kafka topic. Each part of `key` is `$.path.to.field` in the value, `kafka.key`, a field of that
    (`kafka.key.id`), or `header:NAME`; so is `version`, or a field of the event that carries the row (`event:ts_ms`).
    `value` is the format of its values, and `schema` what describes them.

    `partitioner` is that of the topic's producers: records of compensation that have no partition yet go by it.
    `record_key` is the format of Kafka's own key; None: a text. `key_types`, `key_layout` and `identity` are as in
    `TablePoint`.
    """

    name: str
    connection: str
    topic: str
    key: tuple[str, ...]
    value: str = "json"
    schema: ValueSchema | None = field(default=None, metadata=WRITTEN_IF_ANY)
    version: str | None = None
    partitioner: Partitioner = Partitioner.MURMUR2
    record_key: str | None = field(default=None, metadata=WRITTEN_IF_ANY)
    key_types: tuple[KeyType, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    key_layout: tuple[KeyType, ...] = field(default=(), metadata=NEVER_WRITTEN)
    identity: str = field(default="", metadata=NEVER_WRITTEN)

    @property
    def kind(self) -> PointKind:
        return PointKind.TOPIC

    @property
    def can_encode(self) -> bool:
        """Whether records can be made in the formats of its values and keys."""
        return VALUE_FORMATS[self.value] and self.record_key in (None, RECORD_KEYS[0])

    @property
    def connections(self) -> tuple[str, ...]:
        """Return the ids of all connections that it needs."""
        registry = self.schema.registry if self.schema else None
        return (self.connection,) if registry is None else (self.connection, registry)

    @property
    def place(self) -> str:
        """Topic and connection."""
        return f"{self.connection}:{self.topic}"

    @property
    def places(self) -> frozenset[str]:
        """Return what its place is known by: its name there, and what it is."""
        return frozenset({self.place, self.identity} - {""})


Point = TablePoint | TopicPoint


def has_log(point: Point | None) -> "TypeIs[TopicPoint]":
    """Return whether what a point holds lies at positions, is never changed, and goes on behind a window."""
    return isinstance(point, TopicPoint)


def can_look_up(point: Point | None) -> "TypeIs[TablePoint]":
    """Return whether the rows that a point holds now are found by key."""
    return isinstance(point, TablePoint)


def has_erasures(points: Iterable[Point], topic: str) -> bool:
    """Return whether the tombstones of a topic point say of one of these points which keys were deleted on purpose."""
    stores = (point for point in points if can_look_up(point))
    return any(store.erased is not None and topic in store.erased.topics for store in stores)
