"""Read where a store says which of its keys were deleted on purpose."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from yaml import ScalarNode

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import Erased, Point, TopicPoint, can_look_up, has_log, is_by_coordinates

_EXAMPLE = "Write 'erased: {table: privacy.erasures, key: flight_id}' or 'erased: {column: deleted_at}'"


def read_erased(point: Section, store_key: tuple[str, ...] | None) -> Erased | None:
    """Return what `erased` of a store says; what is wrong is noted. `store_key`: the store's own key columns."""
    place = point.get("erased")
    if place is None:
        return None
    if isinstance(place.node, ScalarNode) and place.node.value == "tombstones":
        return Erased()  # in which topics, only the hops say
    section = place.section()
    if section is None:
        return None
    section.only("table", "key", "column")
    table, column, key = (section.get(name) for name in ("table", "column", "key"))
    if (table is None) == (column is None):
        place.complain("names both a table and a column" if table else "names neither a table nor a column", _EXAMPLE)
        return None
    if column is not None:
        name = column.text(values.column)
        if key is not None:
            key.complain("goes with 'table'", "Take the line out: the rows of the store have its own key")
        return None if name is None else Erased(column=name)
    assert table is not None
    named = table.text(values.table)
    columns = key.words(values.column) if key is not None else store_key
    if key is not None and columns and store_key and len(columns) != len(store_key):
        key.complain(
            f"has {len(columns)} parts, and the key of the store {len(store_key)}",
            "Name the columns of the table that hold the parts of the store's key, in the same order",
        )
    return None if named is None or not columns else Erased(table=named, key=tuple(columns))


def with_tombstone_topics(points: Mapping[str, Point], hops: Sequence[Hop], top: Section) -> dict[str, Point]:
    """Return the points with the topics whose tombstones say which keys of a store were erased: those from which a hop
    leads into it. What is wrong is noted."""
    with_topics = dict(points)
    for name, point in points.items():
        if can_look_up(point) and point.erased == Erased():
            place = _place_of(top, name)
            into = [hop for hop in hops if hop.target == name]
            topics = [source for hop in into if has_log(source := points.get(hop.source))]
            _check_topics(place, into, topics)
            with_topics[name] = replace(point, erased=Erased(topics=tuple(topic.name for topic in topics)))
    return with_topics


def _place_of(top: Section, store: str) -> YamlPlace:
    """Return the place of `erased` of a store that was read."""
    place = top.place
    for key in ("points", store, "erased"):
        section = place.section()
        below = None if section is None else section.get_quietly(key)
        place = below or place
    return place


def _check_topics(place: YamlPlace, into: Sequence[Hop], topics: Sequence[TopicPoint]) -> None:
    """Note a store that no topic feeds, whose tombstones are versions already, or cannot name their keys."""
    if any(hop.semantics is Semantics.UPSERT for hop in into):
        place.complain(
            "'tombstones' is not a place where erased keys are named",
            "Under 'semantics: upsert' a tombstone deletes its key already: take the line out. " + _EXAMPLE,
        )
    elif into and not topics:
        place.complain("no hop leads from a topic into this store, and a table has no tombstones", _EXAMPLE)
    for topic in topics:
        in_value = [part for part in topic.key if part.startswith("$.")]
        if is_by_coordinates(topic.key):
            place.complain(
                f"the key of {topic.name} is its coordinates ({', '.join(topic.key)}), and a tombstone has its own",
                f"Write 'key: kafka.key' (or 'header:NAME') at points.{topic.name}, if its records have the key there. "
                + _EXAMPLE,
            )
        elif topic.explode is not None:
            place.complain(
                f"the events of {topic.name} are elements of its records, and a tombstone has none: it names no key",
                _EXAMPLE,
            )
        elif in_value:
            place.complain(
                f"the key of {topic.name} is in the value ({', '.join(in_value)}), which a tombstone does not have",
                f"Write 'key: kafka.key' (or 'header:NAME') at points.{topic.name}, if its records have the key there. "
                + _EXAMPLE,
            )
