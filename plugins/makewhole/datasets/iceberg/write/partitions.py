"""Write rows into the partitions that their values say: every reader looks for them there, and only there."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count

import pyarrow as pa
from pyiceberg.io.pyarrow import _dataframe_to_data_files, _determine_partitions
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from makewhole.datasets.iceberg.describe import arrow_schema
from makewhole.datasets.iceberg.null_lists import keep_null_lists
from makewhole.model.errors import RefusedError

keep_null_lists()

_NOT_COMPUTED = (ValueError, TypeError, NotImplementedError, pa.ArrowException)


def require_known_partitions(table: Table, schema: Schema, name: str) -> None:
    """Check that the partition of every row can be computed.

    Raises:
        RefusedError: a partition is made of columns in a way that cannot be.
    """
    spec = table.spec()
    sources = Counter(field.source_id for field in spec.fields)
    is_known = max(sources.values(), default=0) <= 1
    no_value = pa.Table.from_pylist([{}], schema=arrow_schema(schema))
    try:
        list(_determine_partitions(spec, table.schema(), no_value) if spec.fields else ())
    except _NOT_COMPUTED:
        is_known = False
    if not is_known:
        fields = ", ".join(f"{field.transform}({_column(table, field.source_id)})" for field in spec.fields)
        raise RefusedError(
            f"{name} is partitioned by {fields}, of which not every partition can be computed here; report its gaps, "
            "and repair them by what loads it"
        )


def _column(table: Table, number: int) -> str:
    return table.schema().find_column_name(number) or "a column that is gone"


def written_files(table: Table, tables_of_rows: Iterable[pa.Table], name: str) -> Iterator[DataFile]:
    """Write rows into new files, one table after the other, and yield these; nothing lists them yet.

    Raises:
        RefusedError: a row is in no partition or in two.
    """
    write, numbers = uuid.uuid4(), count()  # the name of a file is made of both
    for rows in tables_of_rows:
        files = list[DataFile]()
        with suppress(ZeroDivisionError):  # by the rows of a partition that no row is in
            files += _dataframe_to_data_files(table.metadata, rows, table.io, write, numbers) if len(rows) else []
        if sum(file.record_count for file in files) != len(rows):
            raise RefusedError(
                f"{name}: not each of {len(rows)} rows is in one partition of the table (one with NaN or -0.0 in a "
                "column that it is partitioned by is not); nothing was committed. Repair them by what loads the table"
            )
        yield from files


def is_of_one_partition(table: Table, file: DataFile, rows: pa.Table) -> bool:
    """Return whether all rows of a file are in the partition that the file is to be listed in. What its statistics say
    is not enough: rows without a value are not in them, and a file may have none."""
    spec = table.spec()
    if spec.is_unpartitioned():
        return True
    partitions = [part.partition_key.partition for part in _determine_partitions(spec, table.schema(), rows)]
    return partitions == [file.partition]
