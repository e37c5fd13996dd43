"""Test that a text whose bytes are no UTF-8 makes the rows beside it unreadable, as pages that do not decode do."""

import io
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.tables.reading import TableReader
from makewhole.tables.tables import Tables
from tests.integration.datasets.test_iceberg_tables import TABLE, shape_of
from tests.world.iceberg_lake import Lake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

TYPES: dict[str, Any] = {"id": pa.string(), "at": pa.timestamp("us", "UTC"), "tags": pa.list_(pa.string())}


def content(column: str, *, has_statistics: bool = False) -> bytes:
    """Return a file of two groups, the second of which has such a text in a column. `has_statistics`: of that, too."""
    rows = [{"id": f"O{at}", "at": datetime(2025, 3, 1, tzinfo=UTC), "tags": ["a"]} for at in range(4)]
    table = pa.Table.from_pylist(rows, schema=pa.schema(TYPES))
    spoilt: Any = pa.array([b"O0", b"O1", b"O2", b"\xffO3"], pa.binary()).view(pa.string())
    if column == "tags":
        spoilt = pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), spoilt)
    file = io.BytesIO()
    names = table.column_names
    counted = [name for name in names if has_statistics or name != column]
    with pq.ParquetWriter(file, table.schema, write_statistics=counted) as writer:
        whole = table.set_column(names.index(column), column, spoilt)
        writer.write_table(whole, row_group_size=2)
    return file.getvalue()


def keys(reader: TableReader) -> list[str]:
    """Return the keys of which the rows can be read."""
    return [key for frame in reader.keys(["O0", "O3"]) for key in frame["key"]]


@pytest.mark.parametrize(("column", "held"), [("id", {"O0", "O3"}), ("tags", {"O3"})])
def test_rows_of_a_table_beside_such_a_text_are_not_known(
    lake: Lake, tables: Tables, column: str, held: set[str]
) -> None:
    lake.make_table(TABLE, pa.schema(TYPES))
    path = lake.folder / "a.parquet"
    path.write_bytes(content(column))
    lake.table(TABLE).add_files([str(path)])
    shape = shape_of({"tags": "string"})

    reader = tables.reader(shape)
    assert keys(reader) == ["O0"]
    assert [doubt.keys for doubt in reader.in_doubt] == [frozenset(held)]

    with tables.hold_view(shape) as view:
        plan = view.plan(None, 1)
        reader = tables.reader(shape, plan.view)
        assert [key for frame in reader.part(None, plan.parts[0]) for key in frame["key"]] == ["O0", "O1"]
    assert [file.is_spoilt for file in reader.unreadable] == [True]
