"""Read how far what writes a dataset of files has come: by the names of its files, and by the positions of its rows."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import DataFile, offsets_named
from makewhole.datasets.files.spans import Span
from makewhole.datasets.nested_columns import column_at
from makewhole.datasets.row_frames import is_of_topics
from makewhole.model.points import TablePoint
from makewhole.tables.progress import ProgressRows

_NONE, MOST_OFFSET = -1, (1 << 63) - 1


def file_progress(
    source: FileSource, point: TablePoint, topic: str, partitions: Sequence[int], other_topics: Collection[str] = ()
) -> dict[int, ProgressRows]:
    """Return the last offset of each partition of a topic that files hold: by their names, where some say it, and
    otherwise by their rows; -1: none.

    Rows that do not decode say nothing: what waits for them waits on. Rows that say they are of another topic are left
    out. `other_topics` are those that come into the files besides, where rows do not say it: then names alone count.

    Where rows go beyond what the names say, both are returned, as two rows: the writer may go by either.

    Raises:
        TransientError: a file cannot be read.
    """
    listing = source.listing
    named = offsets_named([*listing.files, *listing.unreadable], topic)
    known = {partition: named.get(partition, _NONE) for partition in partitions}
    files = [data for data in source.newest_first if not _is_named_by(data, set(other_topics) - {topic})]
    held = _held(source, files, _of_topic(point, topic), known)
    said = {at: last if other_topics or at in named else held[at] for at, last in known.items()}
    return {partition: _rows(said[partition], held[partition]) for partition in partitions}


def _is_named_by(data: DataFile, topics: Collection[str]) -> bool:
    """Return whether the name of a file says that its rows are of one of these topics."""
    return data.offsets_named is not None and data.offsets_named.topic in topics


def _of_topic(point: TablePoint, topic: str) -> TablePoint:
    """Return a point of whose rows those of one topic alone are its own, where rows say theirs."""
    if point.dataset is None:
        return point
    return replace(point, dataset=replace(point.dataset, of_topics=(topic,), replay_topics=()))


def _rows(named: int, held: int) -> ProgressRows:
    number = 1 if held <= named else 2
    return ProgressRows(rows=number, offsets=number, least=str(named), greatest=str(held if number == 2 else named))


def _held(source: FileSource, files: Sequence[DataFile], point: TablePoint, known: dict[int, int]) -> dict[int, int]:
    """Return the greatest offset of each partition that rows have, at least what is `known`. The newest files come
    first: of the others the statistics say that they have none beyond."""
    if point.dataset is None or not point.dataset.position:
        return known
    held, (partition_column, offset_column) = dict(known), point.dataset.position
    columns = sorted(point.dataset.named_columns)
    for data in files:
        beyond = tuple(
            (
                Span(column=partition_column, least=partition, most=partition),
                Span(column=offset_column, least=offset + 1, most=MOST_OFFSET),
                *_of_its_topic(point),
            )
            for partition, offset in held.items()
        )
        for _, rows in source.rows(((data, None),), columns, beyond, []):
            own = is_of_topics(rows.rows, point)
            kept = rows.rows if own is None else rows.only(own.to_numpy()).rows
            pairs = zip(
                column_at(kept, partition_column).to_pylist(), column_at(kept, offset_column).to_pylist(), strict=True
            )
            for partition, offset in pairs:
                if partition in held and offset is not None:
                    held[partition] = max(held[partition], offset)
    return held


def _of_its_topic(point: TablePoint) -> list[Span]:
    """Return what holds for the column with the topic in every row of the point's one topic."""
    if point.dataset is None or point.dataset.topic is None:
        return []
    (topic,) = point.dataset.of_topics
    return [Span(column=point.dataset.topic, least=topic, most=topic)]
