"""Read the rows of a data file with their numbers in it, without those that deletes take away.

Columns are found by the numbers that Iceberg gives them: a renamed one under its name of now, a promoted one in its
type of now, one that the file does not have as null, or as its partition or its default says. Only the groups of rows
are read that may hold what is asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import bind, translate_column_names
from pyiceberg.io.pyarrow import (
    _get_column_projection_values,
    _read_deletes,
    _to_requested_schema,
    expression_to_pyarrow,
    pyarrow_to_schema,
)
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table import Table
from pyiceberg.types import ListType, MapType

from makewhole.datasets.iceberg.data_files import ListedFile
from makewhole.datasets.iceberg.null_lists import keep_null_lists
from makewhole.datasets.whole_texts import require_texts
from makewhole.model.errors import RefusedError

keep_null_lists()

_BLOCK_BYTES = 8 << 20
_NANOSECONDS_FROM = 3
"""The version of the format from which on moments may have nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """Rows of a data file, and the number of each in it from 0 on."""

    rows: pa.Table
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]]

    def only(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> "FileRows":
        """Return those of the rows that are kept."""
        return self if kept.all() else FileRows(rows=self.rows.filter(pa.array(kept)), numbers=self.numbers[kept])


@dataclass(frozen=True, kw_only=True)
class SpoiltRows:
    """A group of rows of a data file with a page that does not decode; None: its footer does not, or it is gone, or a
    file of deletes that applies to it is. `gone`: the path of what is gone."""

    listed: ListedFile
    group: int | None = None
    gone: str | None = None

    @property
    def path(self) -> str:
        """The file that has to be restored."""
        return self.gone or self.listed.file.file_path


@dataclass(frozen=True, kw_only=True)
class FileReader:
    """Reads data files of a table by the columns of a schema; what deletes say is read once."""

    table: Table
    schema: Schema
    deleted: dict[str, dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]] = field(default_factory=dict)

    def read(
        self,
        listed: ListedFile,
        columns: Sequence[str],
        where: BooleanExpression | None = None,
        spoilt: list[SpoiltRows] | None = None,
    ) -> Iterator[FileRows]:
        """Yield the rows of a file that are there, with these top columns; at least those for which `where` holds. What
        does not decode is added to `spoilt`, and left out; without such a list pyarrow's own errors are raised.

        Raises:
            RefusedError: it is of a format that is not read.
        """
        if listed.file.file_format is not FileFormat.PARQUET:
            raise RefusedError(
                f"{self.table.name()[-1]} has a data file in {listed.file.file_format.name}, and only Parquet is read; "
                "rewrite it (Spark: `call system.rewrite_data_files`), or take the table out of the pipeline"
            )
        projected = self.schema.select(*columns) if columns else Schema()
        gone = self._gone(listed)
        with self.table.io.new_input(listed.file.file_path).open() as file:
            fragment = _fragment(file)
            if not self._decodes(listed, None, spoilt, lambda: fragment.physical_schema):
                return
            yield from self._rows(fragment, listed, projected, where, gone, spoilt)

    def groups_with(self, listed: ListedFile, where: BooleanExpression) -> Sequence[int]:
        """Return the numbers of the groups of rows of a file that may have rows for which `where` holds."""
        with self.table.io.new_input(listed.file.file_path).open() as file:
            fragment = _fragment(file)
            own, missing = self._own_schema(fragment, listed, self.schema)
            return self._groups(fragment, own, where, missing)

    def _own_schema(self, fragment: Any, listed: ListedFile, projected: Schema) -> tuple[Schema, dict[int, Any]]:
        """Return the columns of a file, and the values of columns that it does not have."""
        version = self.table.metadata.format_version
        own = pyarrow_to_schema(
            fragment.physical_schema,
            self.table.name_mapping(),
            downcast_ns_timestamp_to_us=version < _NANOSECONDS_FROM,
            format_version=version,
        )
        spec = self.table.specs().get(listed.file.spec_id)
        return own, _get_column_projection_values(listed.file, projected, self.schema, spec, own.field_ids)

    def _decodes(
        self, listed: ListedFile, group: int | None, spoilt: list[SpoiltRows] | None, read: Callable[[], object]
    ) -> bool:
        """Return whether a part of a file decodes; False: it does not though its bytes can be read, which `spoilt` says
        now. Raises what `read` does, where there is no such list, or the storage does not answer."""
        try:
            read()
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError):
            if spoilt is None:
                raise
            with self.table.io.new_input(listed.file.file_path).open() as content:
                while content.read(_BLOCK_BYTES):
                    pass
            spoilt.append(SpoiltRows(listed=listed, group=group))
            return False
        return True

    def group_sizes(self, listed: ListedFile) -> list[int]:
        """Return the sizes of the groups of rows of a file, in bytes of their values."""
        with self.table.io.new_input(listed.file.file_path).open() as file:
            footer = pq.read_metadata(cast(Any, file))
        return [footer.row_group(number).total_byte_size for number in range(footer.num_row_groups)]

    def _rows(
        self,
        fragment: Any,
        listed: ListedFile,
        projected: Schema,
        where: BooleanExpression | None,
        gone: np.ndarray[tuple[int], np.dtype[np.int64]],
        spoilt: list[SpoiltRows] | None,
    ) -> Iterator[FileRows]:
        physical, downcast = fragment.physical_schema, self.table.metadata.format_version < _NANOSECONDS_FROM
        own, missing = self._own_schema(fragment, listed, projected)
        read = prune_columns(own, _without_lists(projected), select_full_types=False)
        names = [column.name for column in read.columns]
        chosen = self._groups(fragment, own, where, missing)
        groups = [number for number in chosen if listed.groups is None or number in listed.groups]
        starts = np.cumsum([0, *(group.num_rows for group in fragment.row_groups)])
        for number in groups:
            at = int(starts[number])
            scanner = ds.Scanner.from_fragment(fragment.subset(row_group_ids=[number]), schema=physical, columns=names)
            batches = iter(scanner.to_batches())
            batch: pa.RecordBatch | None = None

            def take() -> None:
                nonlocal batch
                batch = next(batches, None)  # noqa: B023 - called before the next round
                if batch is not None:
                    require_texts(batch)

            while self._decodes(listed, number, spoilt, take) and batch is not None:
                numbers = np.arange(at, at + len(batch), dtype=np.int64)
                at += len(batch)
                kept = np.isin(numbers, gone, invert=True) if len(gone) else np.ones(len(numbers), dtype=bool)
                left = batch if kept.all() else batch.filter(pa.array(kept))
                if not len(left):
                    continue
                rows = _to_requested_schema(
                    projected,
                    read,
                    left,
                    downcast_ns_timestamp_to_us=downcast,
                    projected_missing_fields=missing,
                    allow_timestamp_tz_mismatch=True,
                )
                yield FileRows(rows=pa.Table.from_batches([rows]), numbers=numbers[kept])

    def _groups(
        self, fragment: Any, own: Schema, where: BooleanExpression | None, missing: Mapping[int, Any]
    ) -> Sequence[int]:
        """Return the numbers of the groups of rows that may hold what is asked for; `missing`: the values of columns
        that the file does not have."""
        every = range(len(fragment.row_groups))
        if where is None or isinstance(where, AlwaysTrue):
            return every
        try:
            bound = bind(self.schema, where, case_sensitive=True)
            translated = translate_column_names(bound, own, True, dict(missing))
            wanted = expression_to_pyarrow(bind(own, translated, case_sensitive=True), own)
            parts = fragment.split_by_row_group(wanted)
        except (pa.ArrowInvalid, ValueError, TypeError):  # a name with dots in it, of which it takes parts for columns
            return every
        return sorted(group.id for part in parts for group in part.row_groups)

    def _gone(self, listed: ListedFile) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the numbers of the rows that deletes take away."""
        numbers = [np.empty(0, dtype=np.int64)]
        for delete in listed.deletes:
            known = self.deleted.get(delete.file_path)
            if known is None:
                positions = _read_deletes(self.table.io, delete)
                known = {path: np.asarray(rows.to_numpy(), dtype=np.int64) for path, rows in positions.items()}
                self.deleted[delete.file_path] = known
            numbers += [known[path] for path in (listed.file.file_path,) if path in known]
        return np.unique(np.concatenate(numbers))


def _fragment(file: Any) -> Any:
    """Return a file to be scanned, whose pages are held to their checksums where they have any."""
    options = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)
    parquet: Any = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return parquet.make_fragment(file)


def _without_lists(projected: Schema) -> set[int]:
    """Return the numbers of the columns and parts that a schema has. Lists and maps are chosen by their items."""
    return {number for number in projected.field_ids if not isinstance(projected.find_type(number), ListType | MapType)}
