"""Decode JSON values by Arrow's reader alone, to hold it to the other decoders."""

import polars as pl
import pyarrow as pa

from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.record_values import ValueShape


def decode_with_arrow(records: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    """Decode the records of a batch.

    Raises:
        UnusualBatch, ArrowInvalid, ArrowNotImplementedError: some value is unusual.
    """
    frame = json_values._read_with_arrow(records.column("value"), record_values._wanted(shape))
    return record_values._with_other_columns(frame, shape)
