"""Hold the texts of Arrow rows to UTF-8: Parquet takes any bytes for one, and polars takes what Arrow has on trust."""

import numpy as np
import pyarrow as pa

from makewhole.datasets.arrow_types import ColumnType
from makewhole.native.arrays import ArrowArray, UInt8s

_NOT_ASCII = 0x8080808080808080


def require_texts(rows: pa.Table | pa.RecordBatch) -> None:
    """Check that each text is one, those inside lists and parts among them.

    Raises:
        pa.ArrowInvalid: the bytes of one are no UTF-8.
    """
    for column in rows.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        for chunk in chunks:
            if _has_texts(chunk.type) and not _is_ascii(chunk):
                chunk.validate(full=True)


def _is_ascii(array: ArrowArray) -> bool:
    """Return whether an array has texts of ASCII alone, wherever one is cut from the next; False: another way shows it.
    To check text by text takes ten times as long."""
    kind = array.type
    if pa.types.is_struct(kind):
        return all(_is_ascii(array.field(at)) for at in range(kind.num_fields))
    if not _has_texts(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    content = array.buffers()[2]
    return content is None or _has_ascii_alone(np.frombuffer(content, dtype=np.uint8))


def _has_ascii_alone(content: UInt8s) -> bool:
    whole = len(content) // 8 * 8
    words = content[:whole].view(np.uint64)
    return not bool(np.bitwise_or.reduce(words) & np.uint64(_NOT_ASCII)) and not (content[whole:] >= 0x80).any()


def _has_texts(kind: ColumnType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_texts(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_text or any(_has_texts(kind.field(at).type) for at in range(kind.num_fields))
