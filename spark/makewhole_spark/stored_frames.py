"""Read stored Parquet files in Python workers, from storage that Spark itself does not know.

Spark's own reader needs jars of Hadoop for an object store, and the secret in its configuration, which it shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from makewhole.compute.frames import Schema
from makewhole.file_system import arrow_file_system, is_object_store
from makewhole.gate import NamedFiles
from makewhole.gate.frame import Frame

_ROWS_OF_A_BATCH = 65_536
_TYPES: Mapping[Any, tuple[pa.DataType, str]] = {
    pl.String: (pa.string(), "string"),
    pl.Boolean: (pa.bool_(), "boolean"),
    pl.Int64: (pa.int64(), "bigint"),
}


def frame_or_names(session: SparkSession, uris: Sequence[str], schema: Schema) -> Frame | NamedFiles:
    """Return a frame by which the gate finds stored files, or their names where Spark's reader has no way to them."""
    if not is_object_store(uris[0]):
        frame: Frame = session.read.parquet(*uris)
        return frame
    return NamedFiles(paths=uris, read=lambda paths: stored_frame(session, paths, schema))


def stored_frame(session: SparkSession, uris: Sequence[str], schema: Schema) -> DataFrame:
    """Return a frame of the rows of these files, with the columns of a schema of texts, booleans and integers. Each
    action reads the files again.

    As with Spark's own reader the frame has the columns that the first file has; those that another file lacks are
    null in its rows.
    """
    held = _columns(uris[0])
    fields = {name: _TYPES[kind] for name, kind in schema.items() if name in held}
    wanted = pa.schema([(name, arrow) for name, (arrow, _) in fields.items()])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_numpy():
                yield from _rows(uris[number], wanted)

    slots = min(len(uris), session.sparkContext.defaultParallelism)
    ddl = ", ".join(f"{name} {spark}" for name, (_, spark) in fields.items())
    return session.range(0, len(uris), 1, slots).mapInArrow(read, ddl)


def _columns(uri: str) -> list[str]:
    system, path = arrow_file_system(uri)
    names: list[str] = pq.read_schema(path, filesystem=system).names
    return names


def _rows(uri: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    system, path = arrow_file_system(uri)
    with pq.ParquetFile(path, filesystem=system) as file:
        held = [name for name in wanted.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(_ROWS_OF_A_BATCH, columns=held):
            columns = [
                batch.column(field.name).cast(field.type) if field.name in held else pa.nulls(len(batch), field.type)
                for field in wanted
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)
