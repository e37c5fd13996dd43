"""Read how far what writes a dataset of files has come: by the names of its files, and by the positions of its rows."""

from collections.abc import Sequence

from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import offsets_named
from makewhole.datasets.files.spans import Span
from makewhole.datasets.nested_columns import column_at
from makewhole.datasets.row_frames import is_of_topics
from makewhole.model.points import TablePoint
from makewhole.tables.progress import ProgressRows

_NONE, MOST_OFFSET = -1, (1 << 63) - 1


def file_progress(
    source: FileSource, point: TablePoint, topic: str, partitions: Sequence[int]
) -> dict[int, ProgressRows]:
    """Return the last offset of each partition of a topic that files hold: by their names, where some say it, and
    otherwise by their rows; -1: none.

    Rows that do not decode say nothing: what waits for them waits on.

    Where rows go beyond what the names say, both are returned, as two rows: the writer may go by either.

    Raises:
        TransientError: a file cannot be read.
    """
    listing = source.listing
    named = offsets_named([*listing.files, *listing.unreadable], topic)
    held = _held(source, point, {partition: named.get(partition, _NONE) for partition in partitions})
    return {partition: _rows(named.get(partition, held[partition]), held[partition]) for partition in partitions}


def _rows(named: int, held: int) -> ProgressRows:
    number = 1 if held <= named else 2
    return ProgressRows(rows=number, offsets=number, least=str(named), greatest=str(held if number == 2 else named))


def _held(source: FileSource, point: TablePoint, known: dict[int, int]) -> dict[int, int]:
    """Return the greatest offset of each partition that rows have, at least what is `known`. The newest files are read
    first: of the others the statistics say that they have none beyond."""
    if point.dataset is None or not point.dataset.position:
        return known
    held, (partition_column, offset_column) = dict(known), point.dataset.position
    columns = sorted(point.dataset.named_columns)
    for data in sorted(source.files, key=lambda one: (-one.file.modified_ms, one.path)):
        beyond = tuple(
            (
                Span(column=partition_column, least=partition, most=partition),
                Span(column=offset_column, least=offset + 1, most=MOST_OFFSET),
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
