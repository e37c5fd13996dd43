"""Read `explode` of a topic point: the array whose elements are the events."""

from collections.abc import Iterator
from dataclasses import replace

from makewhole.config import values
from makewhole.config.key_types import KeyDraft
from makewhole.config.places.columns import ColumnsDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.points import TopicPoint, is_by_coordinates

_ELEMENT = "[*]"


def read_exploded(section: Section, topic: TopicPoint, key: KeyDraft, columns: ColumnsDraft) -> TopicPoint:
    """Return a topic with its array, and the places in an element as they are read: what is wrong is noted."""
    line = section.get("explode")
    array = line.text(values.array) if line else None
    for place, at in _places(section, topic, key, columns):
        _note_place(place, at, array)
    if line is None or array is None:
        return topic
    if is_by_coordinates(topic.key):
        key.place.complain(
            f"is the place of a record, and {array} divides records", "Name fields: of the record, and of the element"
        )
    elif not any(part.startswith(f"{array}.") or part == array for part in topic.key):
        key.place.complain(
            f"has no part in {array}, so that all elements of a record would be one event",
            f"Name what identifies an element in its record, too: '{array}.FIELD'",
        )
    return replace(
        topic,
        explode=_plain(array),
        key=tuple(map(_plain, topic.key)),
        version=None if topic.version is None else _plain(topic.version),
        columns=tuple((name, _plain(place)) for name, place in topic.columns),
        units=tuple((_plain(place), unit) for place, unit in topic.units),
    )


def _places(
    section: Section, topic: TopicPoint, key: KeyDraft, columns: ColumnsDraft
) -> Iterator[tuple[str, YamlPlace]]:
    yield from ((part, key.place) for part in topic.key)
    yield from ((place, columns.lines[name]) for name, place in columns.places.items())
    version = section.get_quietly("version")
    if topic.version is not None and version is not None:
        yield topic.version, version


def _note_place(place: str, line: YamlPlace, array: str | None) -> None:
    """Note a place that names an element where there is none, or the array where there is an element."""
    if array is None:
        if _ELEMENT in place:
            line.complain(
                f"{place} is in an element of an array, and the point's events are whole records",
                f"Write 'explode: \"{place[: place.index(_ELEMENT) + len(_ELEMENT)]}\"' at the point, or name a field "
                "that a record has once",
            )
        return
    bare = _plain(array)
    if _ELEMENT in place.removeprefix(array):
        line.complain(f"{place} is in another array than {array}", f"Name a field of the record, or '{array}.FIELD'")
    elif not place.startswith(array) and (place == bare or place.startswith(f"{bare}.")):
        line.complain(
            f"{place} is the array itself", f"Write '{array}{place.removeprefix(bare)}' for what an element has"
        )


def _plain(place: str) -> str:
    """Return a place as an element is read: as if it stood where its array does."""
    return place.replace(_ELEMENT, "")
