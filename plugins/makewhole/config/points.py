"""Read the `points` of a pipeline file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from yaml.nodes import ScalarNode

from makewhole.config import values
from makewhole.config.datasets import DATASET, DATASET_KEYS, DatasetDraft, PointWord, read_dataset
from makewhole.config.erased import read_erased
from makewhole.config.key_types import KeyDraft, read_key
from makewhole.config.places.columns import ColumnsDraft, named_as_in_file, read_columns
from makewhole.config.places.exploded import read_exploded
from makewhole.config.places.place_units import read_version
from makewhole.config.record_formats import note_columns, note_places, read_record_key
from makewhole.config.topics_alone import names_on_hops
from makewhole.config.tree import Section, YamlPlace
from makewhole.config.value_schema import FORMAT_KEYS, read_value
from makewhole.model.pipeline import Pipeline
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
from makewhole.model.verdict import Duplicates

_TABLE_KEYS = ("kind", "connection", "table", "key", "time", "version", "columns")
_KEYS = {
    PointKind.LEDGER: (*_TABLE_KEYS, "payload", "record_key", "headers", "leave_headers", "leave_fields"),
    PointKind.STORE: (*_TABLE_KEYS, "erased"),
    PointKind.TOPIC: (
        *("kind", "connection", "topic", "key", "version", "partitioner", "record_key", "columns", "duplicates"),
        *("explode", "publish"),
        *FORMAT_KEYS,
    ),
}
_SHORT_KEYS = {"position": POSITION, "sequence": SEQUENCE}
_ANY_KEYS = tuple(sorted({key for keys in (*_KEYS.values(), DATASET_KEYS) for key in keys}))


@dataclass(frozen=True, kw_only=True)
class PointDraft:
    """A point as far as it could be read, so that hops can be checked even when something else in it is wrong."""

    place: YamlPlace
    kind: PointKind | None
    key: KeyDraft | None
    has_version: bool
    point: Point | None
    columns: ColumnsDraft = field(default_factory=ColumnsDraft)
    publish: "PublishDraft | None" = None

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


@dataclass(frozen=True, kw_only=True)
class PublishDraft:
    """The places where a topic point is published, as its file has them. `topic` is the name of a point, which may not
    be one."""

    place: YamlPlace
    section: Section
    topic: str | None


def read_points(top: Section) -> Mapping[str, PointDraft]:
    """Return every point by name, in file order; what is wrong is noted."""
    place = top.need("points", "Name the places to compare, each with its kind, connection and key")
    section = place.section() if place else None
    if section is None:
        return {}
    drafts, joined = {}, names_on_hops(top)
    for name, point_place in section:
        _check_name(name, point_place)
        drafts[name] = _read_point(name, point_place, is_joined=name in joined)
    if place and not drafts:
        place.complain("names no point", "Name two points that a hop joins, or one topic")
    return drafts


def _check_name(name: str, place: YamlPlace) -> None:
    try:
        values.name(name)
    except values.UnfitError as unfit:
        place.complain(unfit.found, unfit.remedy)


def _read_point(name: str, place: YamlPlace, *, is_joined: bool) -> PointDraft:
    section = place.section()
    if section is None:
        return PointDraft(place=place, kind=None, key=None, has_version=False, point=None)
    kind_place = section.need("kind", f"Say which it is: {', '.join(PointWord)}")
    word = kind_place.text(values.choice(PointWord, "a kind of point")) if kind_place else None
    kind = None if word is None else PointKind.STORE if word is DATASET else PointKind(word)
    section.only(*(DATASET_KEYS if word is DATASET else _KEYS[kind] if kind else _ANY_KEYS))
    dataset = read_dataset(section) if word is DATASET else None
    key = _read_key(section, kind, dataset, is_joined=is_joined)
    columns = read_columns(section, of_table=kind is not PointKind.TOPIC) if kind else ColumnsDraft()
    point: Point | None = None
    if kind is PointKind.TOPIC:
        topic = _read_topic(name, section, key, columns)
        if topic is not None:
            note_columns(columns, topic.value, topic.record_key)
        point = topic if topic is None or key is None else read_exploded(section, topic, key, columns)
    elif kind is not None:
        table = _read_table(name, kind, section, key, dataset)
        point = None if table is None else named_as_in_file(table, columns)
    return PointDraft(
        place=place,
        kind=kind,
        key=key,
        has_version=section.has("version"),
        point=point,
        columns=columns,
        publish=_read_publish(section) if kind is PointKind.TOPIC else None,
    )


def _read_key(
    section: Section, kind: PointKind | None, dataset: DatasetDraft | None, *, is_joined: bool
) -> KeyDraft | None:
    """Return the key of a point. A dataset without one is known by the positions of its rows, and the records of a
    topic that no hop joins by their sequences."""
    if kind is None:
        return None
    if kind is PointKind.TOPIC:
        if not is_joined and not section.has("key") and not section.has("explode"):
            return KeyDraft(place=section.absent("key"), names=SEQUENCE)
        return read_key(section, values.key_part, _SHORT_KEYS)
    if dataset is not None and dataset.has_position and not section.has("key"):
        return dataset.key_by_position()
    return read_key(section, values.column)


def _read_topic(name: str, section: Section, key: KeyDraft | None, columns: ColumnsDraft) -> TopicPoint | None:
    connection = _needed(section, "connection", values.connection_id, "Name the connection to its Kafka cluster")
    topic = _needed(section, "topic", values.topic, "Name the topic")
    value, schema = read_value(section)
    record_key, key_schema = read_record_key(section, schema)
    note_places(section, key, value, record_key)
    version = read_version(section, columns.units)
    partitioner = _read_partitioner(section)
    wanted = section.get("duplicates")
    duplicates = wanted.text(values.choice(Duplicates, "what becomes of duplicates")) if wanted else None
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
        key_schema=key_schema,
        version=version,
        partitioner=partitioner,
        duplicates=duplicates,
        columns=columns.of_topic(),
        units=tuple(columns.units.units.items()),
    )


def note_fed(pipeline: Pipeline, drafts: Mapping[str, PointDraft]) -> None:
    """Note the topics of which the file asks for keys with several records, and into which a hop leads."""
    for name, point in pipeline.points.items():
        into = pipeline.hops_into(name)
        if into and has_log(point) and point.duplicates is not None:
            section = drafts[name].place.section()
            place = section.get_quietly("duplicates") if section else None
            (place or drafts[name].place).complain(
                f"asks for the keys of {name} with several records, which hop {into[0].name} finds as `duplicate`",
                "Take the line out; it is for a topic into which no hop leads",
            )


def _read_publish(section: Section) -> PublishDraft | None:
    place = section.get("publish")
    published = place.section() if place else None
    if place is None or published is None:
        return None
    topic = published.get_quietly("topic")
    is_text = topic is not None and isinstance(topic.node, ScalarNode)
    return PublishDraft(place=place, section=published, topic=topic.node.value if topic and is_text else None)


def _read_partitioner(section: Section) -> Partitioner:
    place = section.get("partitioner")
    named = place.text(values.choice(Partitioner, "a partitioner")) if place else None
    return named or Partitioner.MURMUR2


def _read_table(
    name: str, kind: PointKind, section: Section, key: KeyDraft | None, dataset: DatasetDraft | None
) -> TablePoint | None:
    system = "PostgreSQL database" if dataset is None else "catalogue or its storage"
    connection = _needed(section, "connection", values.connection_id, f"Name the connection to its {system}")
    if dataset is not None:
        table = dataset.name
    else:
        remedy = "Name the table, with its schema if it has one: 'ops.departures'"
        table = _needed(section, "table", values.table, remedy)
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
        dataset=None if dataset is None else dataset.place,
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
