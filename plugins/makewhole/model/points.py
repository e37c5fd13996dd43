"""Describe the points of a pipeline: tables and topics, as its file has them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.places.record_paths import written_path
from makewhole.model.value_types import with_unit
from makewhole.model.verdict import Duplicates

if TYPE_CHECKING:
    from typing_extensions import TypeIs

ColumnPlaces = tuple[tuple[str, str], ...]
"""The columns of a point that stand elsewhere than under their own name: name → column, or place in the record."""
IN_DOCUMENT = "in_document"
WRITTEN_IF_ANY: Mapping[str, str] = {IN_DOCUMENT: "if any"}
WRITTEN_IF_SAID: Mapping[str, str] = {IN_DOCUMENT: "if said"}
NEVER_WRITTEN: Mapping[str, str] = {IN_DOCUMENT: "never"}
"""Metadata of fields that the document of a configuration has only where they are set, or never has."""


_PART_OF_NAME = re.compile(r'(?:"((?:[^"]|"")+)"|([^".]+))(\.(?=.)|\Z)', re.DOTALL)


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


POSITION = ("kafka.partition", "kafka.offset")
SEQUENCE = ("kafka.producer_id", "kafka.producer_epoch", "kafka.partition", "kafka.sequence")
"""The keys of a topic that are none of its records' contents: where a record lies, and how its producer numbered it."""
COORDINATES: Mapping[str, str] = {part: part.removeprefix("kafka.") for part in (*POSITION, *SEQUENCE)}
"""The parts of these keys, each with the column of the log that holds it."""


def is_by_coordinates(key: Iterable[str]) -> bool:
    """Return whether a topic's key is where a record lies or how it is numbered: a record that is sent again has
    another one."""
    return any(part in COORDINATES for part in key)


def is_by_sequence(key: Iterable[str]) -> bool:
    """Return whether a topic's key is how its producers number its records."""
    return SEQUENCE[0] in key


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
    `erased` (store) says which keys were deleted on purpose. `columns` are those of the table that the pipeline's file
    knows by another name; key, time and all other columns of the point are named as the file names them. `dataset`:
    what it has besides where it is one, whose `table` is a name in a catalogue, or a path.
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
    columns: ColumnPlaces = field(default=(), metadata=WRITTEN_IF_ANY)
    dataset: DatasetPlace | None = field(default=None, metadata=WRITTEN_IF_ANY)

    def column_place(self, name: str) -> str:
        """Return the column of the table that the file knows by a name."""
        return dict(self.columns).get(name) or {f'"{own}"': own for own, _ in self.columns}.get(name, name)

    def column_name(self, column: str) -> str:
        """Return the name by which the file knows a column of the table. One that has none, and whose own name is that
        of another column, gets it in quotation marks."""
        names = {place: name for name, place in self.columns}
        return names.get(column) or (f'"{column}"' if column in dict(self.columns) else column)

    def renamed(self, rename: Callable[[str], str]) -> "TablePoint":
        """Return the same point with other names for its key, its time and all other columns that it names."""
        erased = self.erased
        if erased is not None and erased.column is not None:
            erased = replace(erased, column=rename(erased.column))
        new = {column: rename(column) for column in self.named_columns}
        return replace(
            self,
            key=tuple(map(rename, self.key)),
            time=new.get(self.time or ""),
            version=new.get(self.version or ""),
            payload=new.get(self.payload or ""),
            record_key=new.get(self.record_key or ""),
            headers=tuple((name, new.get(source, source)) for name, source in self.headers),
            erased=erased,
            dataset=None if self.dataset is None else self.dataset.renamed(rename),
        )

    @property
    def named_columns(self) -> frozenset[str]:
        """The columns that the point itself names: key, time and the like."""
        erased = None if self.erased is None else self.erased.column
        single = (self.time, self.version, self.payload, self.record_key, erased)
        positions = () if self.dataset is None else self.dataset.named_columns
        return frozenset((*self.key, *self.header_columns, *positions, *filter(None, single)))

    @property
    def in_table(self) -> "TablePoint":
        """The same point by the columns of its table alone, as what reads and writes tables knows it."""
        return replace(self.renamed(self.column_place), columns=()) if self.columns else self

    @property
    def key_places(self) -> tuple[str, ...]:
        """The columns of the key."""
        return tuple(map(self.column_place, self.key))

    @property
    def version_place(self) -> str | None:
        """The column with the version."""
        return None if self.version is None else self.column_place(self.version)

    @property
    def connections(self) -> tuple[str, ...]:
        """Return the ids of all connections that it needs."""
        return (self.connection,)

    @property
    def header_columns(self) -> tuple[str, ...]:
        """The columns that hold headers of its records."""
        return tuple(source for _, source in self.headers if not source.startswith("'"))

    @property
    def table_names(self) -> tuple[str, ...]:
        """The name of the table, behind that of its schema if the file says one, without quotation marks."""
        return names_of_table(self.table)

    @property
    def place(self) -> str:
        """Table and connection, whatever the point is called."""
        return f"{self.connection}:{self.table}"

    @property
    def written_place(self) -> str:
        """Its place, with the columns that a plan knows by another name: what a plan is bound to that writes rows."""
        named = ", ".join(f"{name}: {column}" for name, column in self.columns)
        return f"{self.place} ({named})" if named else self.place

    @property
    def places(self) -> frozenset[str]:
        """Return what its place is known by: its name there, and what it is."""
        return frozenset({self.place, self.identity} - {""})


VALUE_FORMATS: Mapping[str, bool] = {
    "json": True,
    "avro": True,
    "protobuf": True,
    "json_schema": False,
    "json_in_string": True,
    "connect": True,
    "debezium": False,
    "string": False,
    "bytes": False,
}
"""The formats of record values, as a pipeline file names them, and whether records can be made in them; the first is
the default."""
SCHEMA_INSIDE = ("connect",)
"""Those whose values carry their own schema, which no row has: a record can be made of the whole value alone."""
EVENT_FORMATS = ("debezium",)
"""Those whose values are events that carry a row."""
WHOLE_FORMATS = ("string", "bytes")
"""Those whose values have one field, `value`: the whole."""
RECORD_KEYS = ("string", "json", "json_schema", "connect", "avro", "protobuf", "bytes")
"""The formats of record keys, as a pipeline file names them; the first is the default, in which records can be made."""
KEYS_WITH_FIELDS = ("json", "json_schema", "connect", "avro", "protobuf")
"""Those whose keys can have fields."""
WITH_SCHEMA = ("avro", "protobuf")
"""The formats of values and keys that a schema describes."""


@dataclass(frozen=True, kw_only=True)
class ValueSchema:
    """Description of the values of a topic: a registry, by which each names its own schema, or one schema for all.

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
    (`kafka.key.id`), or `header:NAME`; or they are those of `POSITION` or of `SEQUENCE`. `version` is such a place,
    too, or a field of the event that carries the row (`event:ts_ms`). `value` is the format of its values, and `schema`
    what describes them.

    `partitioner` is that of the topic's producers: records of compensation that have no partition yet go by it.
    `record_key` is the format of Kafka's own key; None: a text. `key_schema` describes it, as `schema` the values;
    None beside a format with a schema: the registry of the values. `key_types`, `key_layout` and `identity` are as in
    `TablePoint`. `columns` are those that are no fields of their own name, with their places. `units` are those of
    places at which a number counts since 1970 (`makewhole.model.value_types`). `duplicates` asks for its keys with
    several records, where no hop leads into it. `explode` is the array whose elements are the events, not the records;
    key, version and columns then name places in an element as if it were the array.
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
    key_schema: ValueSchema | None = field(default=None, metadata=WRITTEN_IF_ANY)
    key_types: tuple[KeyType, ...] = field(default=(), metadata=WRITTEN_IF_ANY)
    key_layout: tuple[KeyType, ...] = field(default=(), metadata=NEVER_WRITTEN)
    identity: str = field(default="", metadata=NEVER_WRITTEN)
    columns: ColumnPlaces = field(default=(), metadata=WRITTEN_IF_ANY)
    duplicates: Duplicates | None = field(default=None, metadata=WRITTEN_IF_ANY)
    units: ColumnPlaces = field(default=(), metadata=WRITTEN_IF_ANY)
    explode: str | None = field(default=None, metadata=WRITTEN_IF_ANY)

    def column_place(self, name: str) -> str:
        """Return where the column of a name stands in a record."""
        return dict(self.columns).get(name, f"${written_path((name,))}")

    @property
    def key_places(self) -> tuple[str, ...]:
        """The places of the key's parts."""
        return self.key

    @property
    def version_place(self) -> str | None:
        """The place of the version, with its unit."""
        return None if self.version is None else with_unit(self.version, self.units)

    @property
    def kind(self) -> PointKind:
        return PointKind.TOPIC

    @property
    def needs_payload(self) -> bool:
        """Whether a record can be made of a ledger's row only where a column holds the whole value."""
        return self.value in SCHEMA_INSIDE

    @property
    def can_encode(self) -> bool:
        """Whether records can be made in the formats of its values and keys."""
        return VALUE_FORMATS[self.value] and self.record_key in (None, RECORD_KEYS[0])

    @property
    def connections(self) -> tuple[str, ...]:
        """Return the ids of all connections that it needs."""
        registries = (schema.registry for schema in (self.schema, self.key_schema) if schema is not None)
        return tuple(dict.fromkeys((self.connection, *filter(None, registries))))

    @property
    def place(self) -> str:
        """Topic and connection."""
        return f"{self.connection}:{self.topic}"

    @property
    def written_place(self) -> str:
        """Identity of the place that a plan which writes records is bound to."""
        return self.place

    @property
    def places(self) -> frozenset[str]:
        """Return what its place is known by: its name there, and what it is."""
        return frozenset({self.place, self.identity} - {""})


Point = TablePoint | TopicPoint


@dataclass(frozen=True, kw_only=True)
class Publish:
    """Name where the records of a topic point are published, each key once: in the folder `path` of a storage (None:
    beside the windows), and from there into the topic point `topic` (None: into none)."""

    point: str
    path: str | None = None
    topic: str | None = None


def names_of_table(text: str) -> tuple[str, ...]:
    """Split the name of a table at its dots; a part in quotation marks is taken as it is.

    Raises:
        ValueError: it is no name.
    """
    names, rest = [], text
    while True:
        match = _PART_OF_NAME.match(rest)
        if match is None:
            raise ValueError(f"{text!r} is not the name of a table")
        quoted, plain, joint = match.groups()
        names.append(plain if quoted is None else quoted.replace('""', '"'))
        rest = rest[match.end() :]
        if not joint:
            return tuple(names)


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
