"""Name the columns of Arrow and their types: what a nested one has besides, its class does not say."""

from typing import Any, TypeAlias

NestedColumn: TypeAlias = Any
"""A column, or a part of one: a `pyarrow.Array`."""
ColumnType: TypeAlias = Any
"""The type of a column: a `pyarrow.DataType`."""
