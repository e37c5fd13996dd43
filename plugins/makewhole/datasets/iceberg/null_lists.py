"""Keep lists and maps of parts that are null, which pyiceberg reads and writes as empty ones.

It makes a list whose items have parts again from its offsets, which do not say which lists are null (Arrow's issue
38809). So a row that lies in a file with others would come back with another value than it had.
"""

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import pyarrow as arrow_io
from pyiceberg.types import ListType, MapType

from makewhole.datasets.arrow_types import NestedColumn


class _KeepsNulls(arrow_io.ArrowProjectionVisitor):
    def list(
        self, list_type: ListType, list_array: NestedColumn | None, value_array: NestedColumn | None
    ) -> NestedColumn | None:
        return _with_nulls(super().list(list_type, list_array, value_array), list_array)

    def map(
        self,
        map_type: MapType,
        map_array: NestedColumn | None,
        key_result: NestedColumn | None,
        value_result: NestedColumn | None,
    ) -> NestedColumn | None:
        return _with_nulls(super().map(map_type, map_array, key_result, value_result), map_array)


def _with_nulls(column: NestedColumn | None, own: NestedColumn | None) -> NestedColumn | None:
    """Return a column that is null where another one is, with the numbers that its type has for keys and items."""
    if column is None or own is None or column.null_count == own.null_count:
        return column
    offsets, nulls = pc.add(column.offsets, pa.scalar(0, column.offsets.type)), own.is_null()
    if pa.types.is_map(column.type):
        maps: Any = pa.MapArray
        return maps.from_arrays(offsets, column.keys, column.items, column.type, mask=nulls)
    return type(column).from_arrays(offsets, column.values, type=column.type, mask=nulls)


def keep_null_lists() -> None:
    """Have pyiceberg keep them in this process, wherever it projects rows to a schema."""
    cast(Any, arrow_io).ArrowProjectionVisitor = _KeepsNulls
