"""Take missing rows from files that no snapshot of a table lists, by the positions of their records.

Such a file may be of a sink that lost its commit, or of an attempt that was killed and repeated: its name says nothing.
Only files where the table's writers alone put theirs are taken.
A row is taken if its position is missing, once, and the file itself is listed if all its rows are taken by one commit.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile

from makewhole.datasets.iceberg.describe import arrow_schema
from makewhole.datasets.iceberg.files_outside import is_of_own_data
from makewhole.datasets.iceberg.outside import found_outside
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.iceberg.write.partitions import is_of_one_partition
from makewhole.datasets.nested_values import row_images, rows_of_images
from makewhole.model.points import TablePoint
from makewhole.tables.rows import OutsideReason


@dataclass(frozen=True, kw_only=True)
class Orphans:
    """Rows of keys in files that no snapshot lists: the image of the row of each key, and those of each file of which
    every row is one of them."""

    images: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def listed(self, source: Snapshotted, added: Sequence[str]) -> tuple[list[DataFile], list[str]]:
        """Return the files that a commit may list as they are, and those of the images `added` that are in none."""
        left, files = Counter(added), list[DataFile]()
        for path, images in self.whole.items():
            own = Counter(images)
            file = _data_file(source, path, images) if own <= left else None
            if file is not None:
                files.append(file)
                left -= own
        return files, list(left.elements())


def find_orphans(source: Snapshotted, point: TablePoint, keys: Sequence[str]) -> Orphans:
    """Return the rows of keys that lie in files of the table's own which no snapshot lists: of several of a key one in
    a file of which all rows are wanted, or else the first by name.

    Raises:
        RefusedError: the files of the warehouse cannot be listed.
        TransientError: the catalogue or the storage does not answer.
    """
    columns = [column.name for column in source.schema.columns]
    by_file: dict[str, list[tuple[str, str]]] = defaultdict(list)
    records: dict[str, int] = {}
    for outside in found_outside(source, point, keys, columns, (OutsideReason.UNLISTED,)):
        path = outside.listed.file.file_path
        if not is_of_own_data(source.table, path):
            continue
        records[path] = outside.records
        by_file[path] += zip(outside.keys, row_images(outside.rows.rows), strict=True)
    images, whole = dict[str, str](), dict[str, list[str]]()
    is_whole = {path: len({key for key, _ in rows}) == len(rows) == records[path] for path, rows in by_file.items()}
    for path, rows in sorted(by_file.items(), key=lambda item: (not is_whole[item[0]], item[0])):
        new = {key: image for key, image in rows if key not in images}
        images |= new
        if is_whole[path] and len(new) == len(rows):
            whole[path] = list(new.values())
    return Orphans(images=images, whole=whole)


def _data_file(source: Snapshotted, path: str, images: Sequence[str]) -> DataFile | None:
    """Return a file, of the images of its rows, as the table would list it; None: it does not fit its schema or its
    partitions of now."""
    rows = rows_of_images(images, arrow_schema(source.schema))
    try:
        file = parquet_file_to_data_file(source.table.io, source.table.metadata, path)
        return file if is_of_one_partition(source.table, file, rows) else None
    except (ValueError, TypeError, KeyError, pa.ArrowException):
        return None
