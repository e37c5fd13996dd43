"""Read `progress` of a hop: the table in which what loads its store keeps how far it has come in the topic."""

from yaml.nodes import ScalarNode

from makewhole.config import values
from makewhole.config.hops.where import where
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.places.dataset_place import TABLE_FORMATS
from makewhole.model.places.sink_progress import FILES_THEMSELVES, OffsetMeaning, SinkProgress
from makewhole.model.points import PointKind, can_look_up

_EXAMPLE = "for example 'progress: {table: dw.sink_offsets, partition: partition, offset: next_offset}'"
_FILES = "files"
_MEANING = values.choice(OffsetMeaning, "a meaning of an offset")


def read_progress(
    section: Section, name: str, source: PointDraft | None, target: PointDraft | None
) -> SinkProgress | None:
    """Return it as far as it can be read; what is wrong is noted. `name` is the hop's, the others its ends."""
    place = section.get("progress")
    if place is None:
        return None
    _note_ends(place, name, source, target)
    if isinstance(place.node, ScalarNode):
        return _of_files(place, name, target)
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


def _of_files(place: YamlPlace, name: str, target: PointDraft | None) -> SinkProgress | None:
    """Return the progress that a dataset of files says itself."""
    word = place.text(_only_files)
    point = None if target is None else target.point
    if word is None or point is None:
        return None
    if not can_look_up(point) or point.dataset is None or point.dataset.format in TABLE_FORMATS:
        place.complain(f"{name} leads into no dataset of files", f"Name a table, {_EXAMPLE}, or a 'consumer_group'")
        return None
    return FILES_THEMSELVES


def _only_files(text: str) -> str:
    if text != _FILES:
        raise values.UnfitError(
            f"{values.shown(text)} is no progress", f"Write 'progress: files', or a table: {_EXAMPLE}"
        )
    return text


def _note_ends(place: YamlPlace, name: str, source: PointDraft | None, target: PointDraft | None) -> None:
    """Note a hop without offsets, or without a database beside its target."""
    if source is not None and source.kind not in (None, PointKind.TOPIC):
        place.complain(f"{name} starts from a {source.kind}, which has no offsets", "Take the line out")
    elif target is not None and target.kind is PointKind.TOPIC:
        place.complain(
            f"{name} leads into a topic, which has no table beside it", "Take the line out, and name a 'consumer_group'"
        )
