"""Test that lists and maps whose items have parts stay null, or empty, in rows that are read and written again."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.tables.tables import Tables
from tests.integration.datasets.test_iceberg_chunks import POINT, TABLE, chunk_id, extra_copy, write
from tests.world.iceberg_lake import Lake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

LINE: Any = pa.struct([("sku", pa.string()), ("lots", pa.list_(pa.struct([("n", pa.int32())])))])
TYPES: dict[str, Any] = {
    "id": pa.string(),
    "at": pa.timestamp("us", "UTC"),
    "lines": pa.list_(LINE),
    "by_name": pa.map_(pa.string(), LINE),
}
SCHEMA = pa.schema(TYPES)
ROWS: list[dict[str, Any]] = [
    {"id": "O1", "at": None, "lines": None, "by_name": None},
    {"id": "O2", "at": None, "lines": [], "by_name": []},
    {"id": "O3", "at": None, "lines": [{"sku": "a", "lots": None}, None], "by_name": [("a", {"sku": "", "lots": []})]},
]


def rows_in_files(lake: Lake) -> list[dict[str, Any]]:
    """Return the rows as the files have them, which no library of Iceberg has read."""
    paths = lake.table(TABLE).inspect.files().column("file_path").to_pylist()
    rows = [row for path in paths for row in pq.read_table(str(path).removeprefix("file://")).to_pylist()]
    return sorted(rows, key=lambda row: str(row["id"]))


@pytest.mark.parametrize("is_own", [True, False], ids=["written by the library", "of another writer"])
def test_lists_and_maps_of_parts_stay_null_or_empty_when_their_file_is_written_again(
    lake: Lake, tables: Tables, is_own: bool
) -> None:
    lake.make_table(TABLE, SCHEMA)
    rows, path = pa.Table.from_pylist([*ROWS, ROWS[2]], schema=SCHEMA), lake.folder / "loaded.parquet"
    if is_own:
        lake.table(TABLE).append(rows)
    else:
        pq.write_table(rows, path)
        lake.table(TABLE).add_files([str(path)])

    with tables.session("look") as session:
        read = session.open_table(POINT).rows_of_key("O1")
        empty = session.open_table(POINT).rows_of_key("O2")
    write(tables, chunk_id(), extra_copy(tables, 0, "O3"))

    assert [row.text for row in read] == ['{"id":"O1","at":null,"lines":null,"by_name":null}']
    assert [row.text for row in empty] == ['{"id":"O2","at":null,"lines":[],"by_name":{}}']
    assert rows_in_files(lake) == ROWS
    assert sorted(lake.rows(TABLE), key=lambda row: str(row["id"])) == ROWS
