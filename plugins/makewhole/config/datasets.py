"""Read points that are datasets: their format, the name or the path, and which columns say where a row came from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from yaml.nodes import ScalarNode

from makewhole.config import values
from makewhole.config.key_types import KeyDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop
from makewhole.model.places.dataset_place import FORMATS, MANIFESTS, TABLE_FORMATS, DatasetPlace
from makewhole.model.points import POSITION, Point, can_look_up, has_log


class PointWord(StrEnum):
    """The words that `kind` of a point may have: a dataset is a store."""

    LEDGER = "ledger"
    TOPIC = "topic"
    STORE = "store"
    DATASET = "dataset"


class OrphanWord(StrEnum):
    """The words that `orphans` of a dataset may have."""

    REPORT = "report"
    ADOPT = "adopt"


DATASET = PointWord.DATASET
DATASET_KEYS = (
    *("kind", "connection", "format", "table", "path", "key", "position", "time", "version", "columns", "erased"),
    *("committed", "orphans", "uuid"),
)
COMMITTED = {"rename": "", "_SUCCESS": "_SUCCESS", "manifest": MANIFESTS}
"""The ways in which files known by a path are committed, with the names of what does it."""
_PARTS = ("topic", "partition", "offset")
_EXAMPLE = "Write 'position: _kafka_metadata' for a column with these parts, or 'position: {partition: p, offset: o}'"


@dataclass(frozen=True, kw_only=True)
class DatasetDraft:
    """A dataset as far as it could be read: its name or path, what it has besides, and where `position` stands."""

    name: str | None
    place: DatasetPlace
    position: YamlPlace | None

    @property
    def has_position(self) -> bool:
        """Whether the file says where positions stand, rightly or wrongly."""
        return self.position is not None

    def key_by_position(self) -> KeyDraft | None:
        """Return the key of rows that are known by their positions; None: these could not be read."""
        if self.position is None or not self.place.position:
            return None
        return KeyDraft(place=self.position, names=self.place.position)


def read_dataset(section: Section) -> DatasetDraft:
    """Return what the file says of a dataset; what is wrong is noted."""
    kind = section.need("format", f"Say which it is: {', '.join(FORMATS)}")
    kind_name = kind.text(_format) if kind else None
    position = section.get("position")
    columns = {} if position is None else _read_position(position)
    place = DatasetPlace(
        format=kind_name or FORMATS[0],
        partition=columns.get("partition"),
        offset=columns.get("offset"),
        topic=columns.get("topic"),
    )
    return DatasetDraft(
        name=_read_name(section, kind_name),
        place=replace(
            place,
            marker=_read_marker(section, kind_name),
            adopts=_read_orphans(section, kind_name),
            uuid=_read_uuid(section, kind_name),
        ),
        position=position,
    )


def _read_marker(section: Section, kind: str | None) -> str:
    """Return the name of the marker in whose folder files count; empty: every file that has its name does."""
    committed = section.get("committed")
    if committed is None:
        return ""
    if kind in TABLE_FORMATS:
        committed.complain(f"is not for {kind}, whose catalogue says what is committed", "Take it out")
    return committed.text(_marker) or ""


def _read_orphans(section: Section, kind: str | None) -> bool:
    """Return whether rows that lie in files which the table does not list are taken from there."""
    place = section.get("orphans")
    adopts = place is not None and place.text(values.choice(OrphanWord, "what becomes of orphans")) is OrphanWord.ADOPT
    if place is None or not adopts:
        return False
    if kind is not None and kind not in TABLE_FORMATS:
        place.complain(f"is not for {kind}: each of its files counts", "Take it out")
    if section.get("position") is None or section.has("key"):
        place.complain(
            "has rows that are not known by their positions: which of them are lost would be guessed",
            "Name `position`, and no `key`; or take the line out, and missing rows are written from their records",
        )
    return adopts


def _read_uuid(section: Section, kind: str | None) -> str:
    """Return which table of its catalogue a dataset is; empty: the file does not say it."""
    place = section.get("uuid")
    if place is None:
        return ""
    if kind is not None and kind not in TABLE_FORMATS:
        place.complain(f"is not for {kind}, whose files have none", "Take it out")
    return place.text(_uuid) or ""


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise values.UnfitError(
            f"{values.shown(text)} is not a uuid", "Write the one in the table's metadata (`table-uuid`)"
        ) from None


def _marker(text: str) -> str:
    if text not in COMMITTED:
        raise values.UnfitError(f"{values.shown(text)} does not commit files", values.allowed(text, tuple(COMMITTED)))
    return COMMITTED[text]


def _format(text: str) -> str:
    if text not in FORMATS:
        raise values.UnfitError(f"{values.shown(text)} is not a format of datasets", values.allowed(text, FORMATS))
    return text


def _read_name(section: Section, kind: str | None) -> str | None:
    """Return the name of a dataset in its catalogue, or its path."""
    if kind is None:
        return None
    is_table = kind in TABLE_FORMATS
    key, other = ("table", "path") if is_table else ("path", "table")
    extra = section.get(other)
    if extra is not None:
        extra.complain(f"is not how a dataset in {kind} is known", f"Write '{key}' instead")
    remedy = "Name it with its namespace: 'dw.orders'" if is_table else "Name the folder of its files: '/dw/orders'"
    place = section.need(key, remedy)
    return place.text(_catalogue_name if is_table else _path) if place else None


def _catalogue_name(text: str) -> str:
    parts = text.split(".")
    if len(parts) < 2 or not all(part and part.isprintable() and part == part.strip() for part in parts):
        raise values.UnfitError(
            f"{values.shown(text)} is not the name of a table in a catalogue",
            "Write its namespace and its name, with dots between: 'dw.orders'",
        )
    return text


def _path(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise values.UnfitError(f"{values.shown(text)} is not a path", "Name the folder of its files: '/dw/orders'")
    return text


def _read_position(place: YamlPlace) -> dict[str, str]:
    """Return the columns of a position by their part; a single name is a column that has all of them."""
    if isinstance(place.node, ScalarNode):
        column = place.text(values.column)
        return {} if column is None else {part: f"{column}.{part}" for part in _PARTS}
    section = place.section()
    if section is None:
        return {}
    section.only(*_PARTS)
    read = {part: section.get(part) for part in _PARTS}
    columns = {part: line.text(values.column) for part, line in read.items() if line is not None}
    if "partition" not in columns or "offset" not in columns:
        place.complain("does not name the columns with the partition and the offset", _EXAMPLE)
        return {}
    return {part: column for part, column in columns.items() if column is not None}


def note_positions(points: Mapping[str, Point], hops: Sequence[Hop], places: Mapping[str, YamlPlace]) -> None:
    """Note datasets that are known by positions and are compared with something that is not."""
    for hop in hops:
        source, target = points.get(hop.source), points.get(hop.target)
        if not can_look_up(target) or target.dataset is None or source is None:
            continue
        if target.key == target.dataset.position and not (has_log(source) and source.key == POSITION):
            places[hop.target].complain(
                f"has no 'key': its rows are known by their positions, and {hop.source} is not",
                f"Write 'key: position' at points.{hop.source} if it is the topic that they came from, or name a 'key' "
                "here",
            )
        others = _other_topics(points, hops, hop, target)
        if target.key == target.dataset.position and target.dataset.topic is None and others:
            places[hop.target].complain(
                f"has positions without a topic, and records of {' and '.join(others)} come to its place, too: theirs "
                f"would be taken for those of {hop.source}",
                "Add 'topic: COLUMN' to 'position'; or name a 'key' here and at the topic",
            )


def _other_topics(points: Mapping[str, Point], hops: Sequence[Hop], hop: Hop, target: Point) -> list[str]:
    """Return the topic points besides the source of a hop whose records come to the place of its target, those that are
    sent again among them."""
    into = [other for other in hops if other.target in points and points[other.target].place == target.place]
    names = dict.fromkeys(name for other in into for name in (other.source, other.redeliver_to) if name in points)
    own = points[hop.source].place
    return [name for name in names if name and has_log(points[name]) and points[name].place != own]


def with_dataset_topics(points: Mapping[str, Point], hops: Sequence[Hop]) -> dict[str, Point]:
    """Return the points with the names of the topics that lead into the datasets whose rows say their topic, and of
    those to which records are sent again that the datasets lack."""
    with_topics = dict(points)
    for name, point in points.items():
        if can_look_up(point) and point.dataset is not None and point.dataset.topic is not None:
            into = [hop for hop in hops if hop.target == name]
            sources = [points.get(hop.source) for hop in into]
            if all(has_log(source) for source in sources):
                topics = _names_of_topics(sources)
                replays = _names_of_topics(points.get(hop.redeliver_to or "") for hop in into)
                replay_topics = tuple(topic for topic in replays if topic not in topics)
                of_topics = replace(point.dataset, of_topics=topics, replay_topics=replay_topics)
                with_topics[name] = replace(point, dataset=of_topics)
    return with_topics


def _names_of_topics(points: Iterable[Point | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.topic for point in points if has_log(point)))
