"""Read `progress` of a hop: the table in which what loads its store keeps how far it has come in the topic."""

from makewhole.config import values
from makewhole.config.hops.where import where
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.places.sink_progress import OffsetMeaning, SinkProgress
from makewhole.model.points import PointKind

_EXAMPLE = "for example 'progress: {table: dw.sink_offsets, partition: partition, offset: next_offset}'"
_MEANING = values.choice(OffsetMeaning, "a meaning of an offset")


def read_progress(
    section: Section, name: str, source: PointDraft | None, target: PointDraft | None
) -> SinkProgress | None:
    """Return it as far as it can be read; what is wrong is noted. `name` is the hop's, the others its ends."""
    place = section.get("progress")
    if place is None:
        return None
    _note_ends(place, name, source, target)
    inside = place.section()
    if inside is None:
        return None
    inside.only("table", "partition", "offset", "means", "topic", "where")
    table = inside.need("table", f"Name the table in the store's database, {_EXAMPLE}")
    partition = inside.need("partition", "Name the column that holds the number of the partition")
    offset = inside.need("offset", "Name the column that holds the offset; 'means' beside it says which one that is")
    means, topic, condition = (inside.get(key) for key in ("means", "topic", "where"))
    named = None if table is None else table.text(values.table)
    columns = [None if entry is None else entry.text(values.column) for entry in (partition, offset)]
    meaning = None if means is None else means.text(_MEANING)
    topic_column = None if topic is None else topic.text(values.column)
    narrowed = None if condition is None else condition.text(where)
    if named is None or columns[0] is None or columns[1] is None:
        return None
    return SinkProgress(
        table=named,
        partition=columns[0],
        offset=columns[1],
        means=meaning or OffsetMeaning.NEXT,
        topic=topic_column,
        where=narrowed,
    )


def _note_ends(place: YamlPlace, name: str, source: PointDraft | None, target: PointDraft | None) -> None:
    """Note a hop without offsets, or without a database beside its target."""
    if source is not None and source.kind not in (None, PointKind.TOPIC):
        place.complain(f"{name} starts from a {source.kind}, which has no offsets", "Take the line out")
    elif target is not None and target.kind is PointKind.TOPIC:
        place.complain(
            f"{name} leads into a topic, which has no table beside it", "Take the line out, and name a 'consumer_group'"
        )
