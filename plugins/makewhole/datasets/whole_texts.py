"""Hold the texts of Arrow rows to UTF-8: Parquet takes any bytes for one, and polars takes what Arrow has on trust."""

import pyarrow as pa

from makewhole.datasets.arrow_types import ColumnType


def require_texts(rows: pa.Table | pa.RecordBatch) -> None:
    """Check that each text is one, those inside lists and parts among them.

    Raises:
        pa.ArrowInvalid: the bytes of one are no UTF-8.
    """
    for column in rows.columns:
        if _has_texts(column.type):
            column.validate(full=True)


def _has_texts(kind: ColumnType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_texts(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_text or any(_has_texts(kind.field(at).type) for at in range(kind.num_fields))
