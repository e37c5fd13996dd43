"""Make the commit of a chunk: the rows of its keys as they are now, and the files that are written again."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFile

from makewhole.datasets.chunk_rows import DatasetChunk
from makewhole.datasets.iceberg.catalog import translated
from makewhole.datasets.iceberg.data_files import ListedFile
from makewhole.datasets.iceberg.describe import arrow_schema, description_of, table_number
from makewhole.datasets.iceberg.left_out.gone_files import reading_lists
from makewhole.datasets.iceberg.open_table import require_columns, rows_of_keys
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.iceberg.write.adoption import Orphans, find_orphans
from makewhole.datasets.iceberg.write.commit import commit
from makewhole.datasets.iceberg.write.fates import ATTEMPT
from makewhole.datasets.iceberg.write.kept import KeptTable
from makewhole.datasets.iceberg.write.partitions import require_known_partitions
from makewhole.datasets.nested_values import rows_of_images
from makewhole.datasets.row_keys import wanted_key
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import RefusedError
from makewhole.model.points import TablePoint
from makewhole.tables.items import RestoreRow, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId

_ROW_LINEAGE_FROM = 3
"""The version of the format from which on each row has a number of its own, which a file that is written again must
keep."""


@dataclass(kw_only=True)
class ChunkSource:
    """A table as a chunk sees it: one snapshot, what of earlier plans was put back there, and which of the rows that
    the chunk adds lie in files that no snapshot lists."""

    source: Snapshotted
    point: TablePoint
    orphans: Orphans = field(default_factory=Orphans)

    @classmethod
    def of_now(cls, connection: IcebergConnection, point: TablePoint) -> "ChunkSource":
        """Return the table as it is now.

        Raises:
            RefusedError: it is gone, lost a column that the point names, or cannot be written.
            TransientError: the catalogue does not answer.
        """
        source = Snapshotted.of(connection, point)
        require_columns(source.table, point)
        if source.table.metadata.format_version >= _ROW_LINEAGE_FROM:
            raise RefusedError(
                f"{point.table} is a table of Iceberg's format {source.table.metadata.format_version}, in which rows "
                "have numbers that a repair could not keep; report its gaps, and repair them by what loads it"
            )
        require_known_partitions(source.table, source.schema, point.table)
        return cls(source=source, point=point)

    def rows(self, chunk: ChunkId, items: Sequence[RowItem], kept: KeptTable, attempt: str) -> DatasetChunk:
        """Return the rows of the keys of items."""
        schema = arrow_schema(self.source.schema)

        def spelling(key: str) -> str:
            return wanted_key(schema, self.point, key, is_exact=False)[0]

        keys = list(_keys_that_fit(items, spelling))
        self.orphans = self._orphans(items, spelling)
        by_key = rows_of_keys(self.source, self.point, keys, is_exact=False)
        undone = sorted({item.effect.plan for item in items if isinstance(item, RestoreRow)})
        return DatasetChunk(
            schema=schema,
            point=self.point,
            description=description_of(self.source.table, self.point),
            id=chunk,
            number=table_number(self.source.table),
            place=f"commit {attempt}",
            spelling=spelling,
            rows={spelling(key): rows for key, rows in by_key.items()},
            outside=self.orphans.images,
            put_back={where: image for plan in undone for where, image in kept.put_back(plan).items()},
        )

    def _orphans(self, items: Sequence[RowItem], spelling: Callable[[str], str]) -> Orphans:
        dataset = self.point.dataset
        if dataset is None or not dataset.adopts or self.point.key != dataset.position:
            return Orphans()
        new = (item for item in items if isinstance(item, UpsertRow) and not item.before)
        return find_orphans(self.source, self.point, [spelling(key) for key in _keys_that_fit(new, spelling)])

    def commit(self, rows: DatasetChunk, attempt: str) -> bool:
        """Commit what a chunk did as one snapshot, which names its attempt; return whether nothing came before it.

        Rows that lie in a file with others are written again with all their columns.
        """
        with translated(self.point.table):
            gone, left = self._written_again(rows.removed)
            adopted, written = self.orphans.listed(self.source, rows.added)
            new = rows_of_images(written, rows.schema)
            properties = {
                ATTEMPT: attempt,
                "makewhole.plan": rows.id.plan,
                "makewhole.target": rows.id.target,
                "makewhole.chunk": str(rows.id.chunk),
            }
            with reading_lists(self.source.table, self.point.table):
                table, parts = self.source.table, chain(left, [new])
                done = commit(table, added=parts, adopted=adopted, removed=gone, properties=properties)
        return done is not None

    def _written_again(self, removed: Iterable[tuple[str, int, int]]) -> tuple[list[DataFile], Iterator[pa.Table]]:
        """Return the files that lose rows, and the rows that they keep: those of a file are read when they are asked
        for, as memory may not hold those of all files of a chunk."""
        numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
        for path, listing, number in removed:
            numbers[path, listing].append(number)
        touched = {path for path, _ in numbers}
        files = [listed for listed in self.source.files() if listed.file.file_path in touched]
        kept = (self._kept(listed, numbers[listed.file.file_path, listed.listing]) for listed in files)
        return [listed.file for listed in files if not listed.listing], kept

    def _kept(self, listed: ListedFile, numbers: Sequence[int]) -> pa.Table:
        columns = [field.name for field in self.source.schema.columns]
        parts = [
            rows.only(np.isin(rows.numbers, numbers, invert=True)).rows
            for _, rows in self.source.rows([listed], columns)
        ]
        return pa.concat_tables(parts) if parts else arrow_schema(self.source.schema).empty_table()


def _keys_that_fit(items: Iterable[RowItem], spelling: Callable[[str], str]) -> Iterator[str]:
    """Yield the keys of items that the table can hold; of another one there is no row, and its item is refused."""
    for item in items:
        with suppress(RefusedError):
            spelling(item.key)
            yield item.key
