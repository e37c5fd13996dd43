"""Read the `points` of a pipeline file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from makewhole.config import values
from makewhole.config.columns import ColumnsDraft, named_as_in_file, read_columns
from makewhole.config.erased import read_erased
from makewhole.config.exploded import read_exploded
from makewhole.config.key_types import KeyDraft, read_key
from makewhole.config.place_units import read_version
from makewhole.config.record_formats import note_columns, note_places, read_record_key
from makewhole.config.tree import Section, YamlPlace
from makewhole.config.value_schema import FORMAT_KEYS, read_value
from makewhole.model.plan import LINEAGE_PREFIX
from makewhole.model.points import (
    POSITION,
    SEQUENCE,
    Partitioner,
    Point,
    PointKind,
    TablePoint,
    TopicPoint,
    can_look_up,
    has_log,
    is_by_coordinates,
)

_TABLE_KEYS = ("kind", "connection", "table", "key", "time", "version", "columns")
_KEYS = {
    PointKind.LEDGER: (*_TABLE_KEYS, "payload", "record_key", "headers", "leave_headers", "leave_fields"),
    PointKind.STORE: (*_TABLE_KEYS, "erased"),
    PointKind.TOPIC: (
        *("kind", "connection", "topic", "key", "version", "partitioner", "record_key", "columns", "explode"),
        *FORMAT_KEYS,
    ),
}
_SHORT_KEYS = {"position": POSITION, "sequence": SEQUENCE}
_ANY_KEYS = tuple(sorted({key for keys in _KEYS.values() for key in keys}))


@dataclass(frozen=True, kw_only=True)
class PointDraft:
    """A point as far as it could be read, so that hops can be checked even when something else in it is wrong."""

    place: YamlPlace
    kind: PointKind | None
    key: KeyDraft | None
    has_version: bool
    point: Point | None
    columns: ColumnsDraft = field(default_factory=ColumnsDraft)

    @property
    def needs_payload(self) -> bool:
        """Whether a record is made of a whole value alone; of what is no topic it is not asked."""
        return has_log(self.point) and self.point.needs_payload

    @property
    def has_payload(self) -> bool:
        """Whether a column of it holds the values of records."""
        return can_look_up(self.point) and self.point.payload is not None

    @property
    def can_encode(self) -> bool:
        """Whether records can be made in the formats of its values and keys; of what is no topic it is not asked."""
        return not has_log(self.point) or self.point.can_encode

    @property
    def key_parts(self) -> int | None:
        return len(self.key.names) if self.key else None

    @property
    def is_by_coordinates(self) -> bool:
        """Whether it is a topic whose key is where its records lie, or how they are numbered."""
        return self.kind is PointKind.TOPIC and self.key is not None and is_by_coordinates(self.key.names)


def read_points(top: Section) -> Mapping[str, PointDraft]:
    """Return every point by name, in file order; what is wrong is noted."""
    place = top.need("points", "Name the places to compare, each with its kind, connection and key")
    section = place.section() if place else None
    if section is None:
        return {}
    drafts = {}
    for name, point_place in section:
        _check_name(name, point_place)
        drafts[name] = _read_point(name, point_place)
    if place and not drafts:
        place.complain("names no point", "Name at least two points")
    return drafts


def _check_name(name: str, place: YamlPlace) -> None:
    try:
        values.name(name)
    except values.UnfitError as unfit:
        place.complain(unfit.found, unfit.remedy)


def _read_point(name: str, place: YamlPlace) -> PointDraft:
    section = place.section()
    if section is None:
        return PointDraft(place=place, kind=None, key=None, has_version=False, point=None)
    kind_place = section.need("kind", f"Say which it is: {', '.join(PointKind)}")
    kind = kind_place.text(values.choice(PointKind, "a kind of point")) if kind_place else None
    section.only(*(_KEYS[kind] if kind else _ANY_KEYS))
    key = None
    if kind is PointKind.TOPIC:
        key = read_key(section, values.key_part, _SHORT_KEYS)
    elif kind is not None:
        key = read_key(section, values.column)
    columns = read_columns(section, of_table=kind is not PointKind.TOPIC) if kind else ColumnsDraft()
    point: Point | None = None
    if kind is PointKind.TOPIC:
        topic = _read_topic(name, section, key, columns)
        if topic is not None:
            note_columns(columns, topic.value, topic.record_key)
        point = topic if topic is None or key is None else read_exploded(section, topic, key, columns)
    elif kind is not None:
        table = _read_table(name, kind, section, key)
        point = None if table is None else named_as_in_file(table, columns)
    return PointDraft(
        place=place,
        kind=kind,
        key=key,
        has_version=section.has("version"),
        point=point,
        columns=columns,
    )


def _read_topic(name: str, section: Section, key: KeyDraft | None, columns: ColumnsDraft) -> TopicPoint | None:
    connection = _needed(section, "connection", values.connection_id, "Name the connection to its Kafka cluster")
    topic = _needed(section, "topic", values.topic, "Name the topic")
    value, schema = read_value(section)
    record_key = read_record_key(section)
    note_places(section, key, value, record_key)
    version = read_version(section, columns.units)
    partitioner = _read_partitioner(section)
    if connection is None or topic is None or key is None:
        return None
    return TopicPoint(
        name=name,
        connection=connection,
        topic=topic,
        key=key.names,
        key_types=key.types,
        value=value,
        schema=schema,
        record_key=record_key,
        version=version,
        partitioner=partitioner,
        columns=columns.of_topic(),
        units=tuple(columns.units.units.items()),
    )


def _read_partitioner(section: Section) -> Partitioner:
    place = section.get("partitioner")
    named = place.text(values.choice(Partitioner, "a partitioner")) if place else None
    return named or Partitioner.MURMUR2


def _read_table(name: str, kind: PointKind, section: Section, key: KeyDraft | None) -> TablePoint | None:
    connection = _needed(section, "connection", values.connection_id, "Name the connection to its PostgreSQL database")
    table = _needed(section, "table", values.table, "Name the table, with its schema if it has one: 'ops.departures'")
    if kind is PointKind.LEDGER:
        time = _needed(section, "time", values.column, "Name the column that says when a row was recorded")
    else:
        time = _optional(section, "time", values.column)
    version = _optional(section, "version", values.column)
    is_ledger = kind is PointKind.LEDGER
    payload = _optional(section, "payload", values.column) if is_ledger else None
    record_key = _optional(section, "record_key", values.column) if is_ledger else None
    headers = tuple(_read_headers(section)) if is_ledger else ()
    left, left_fields = (section.get(name) if is_ledger else None for name in ("leave_headers", "leave_fields"))
    erased = None if is_ledger else read_erased(section, key.names if key else None)
    if connection is None or table is None or key is None:
        return None
    return TablePoint(
        name=name,
        kind=kind,
        connection=connection,
        table=table,
        key=key.names,
        key_types=key.types,
        time=time,
        version=version,
        payload=payload,
        record_key=record_key,
        headers=headers,
        leave_headers=(left.words(str) if left else None) or (),
        leave_fields=(left_fields.words(str) if left_fields else None) or (),
        erased=erased,
    )


def _read_headers(section: Section) -> Iterator[tuple[str, str]]:
    """Yield the headers of a ledger's records: a column each, or a text in single quotes."""
    place = section.get("headers")
    for name, header in (place.section() if place else None) or ():
        if name.lower().startswith(LINEAGE_PREFIX):
            header.complain(f"{name!r} is a header that makewhole writes itself", "Give it another name")
        source = header.text(_header_source)
        if source is not None:
            yield name, source


def _header_source(text: str) -> str:
    is_quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    return text if is_quoted else values.column(text)


def _needed(section: Section, key: str, parse: Callable[[str], str], remedy: str) -> str | None:
    place = section.need(key, remedy)
    return place.text(parse) if place else None


def _optional(section: Section, key: str, parse: Callable[[str], str]) -> str | None:
    place = section.get(key)
    return place.text(parse) if place else None


def named_topic(place: YamlPlace, drafts: Mapping[str, PointDraft]) -> str | None:
    """Return the topic point that is named here; anything else is noted."""
    name = place.text(str)
    topics = [point for point, draft in drafts.items() if draft.kind is PointKind.TOPIC]
    if name is None or name in topics:
        return name
    kind = drafts[name].kind if name in drafts else None
    if name not in drafts:
        place.complain(f"{values.shown(name)} is not a point of this pipeline", values.allowed(name, topics))
    elif kind is not None:
        place.complain(f"{name!r} is a {kind}, and records go to topics", values.allowed(name, topics))
    return None
