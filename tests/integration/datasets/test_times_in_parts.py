"""Test that a row without a time is read as such, also where the time is a part of a column that is null as a whole."""

import pyarrow as pa
import pytest

from makewhole.tables.shape import TimeBounds
from makewhole.tables.tables import Tables
from tests.integration.datasets.test_iceberg_tables import TABLE, read, shape_of
from tests.world.iceberg_lake import Lake
from tests.world.orders import BORN, DAY

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.mark.parametrize("is_required", [True, False])
def test_a_row_whose_time_is_null_with_its_column_is_read_in_the_first_window(
    lake: Lake, tables: Tables, is_required: bool
) -> None:
    """A library says that a part which takes no null is never null."""
    part: pa.Field[pa.DataType] = pa.field("at", pa.timestamp("us", "UTC"), nullable=not is_required)
    lake.make_table(TABLE, pa.schema([pa.field("id", pa.string()), pa.field("after", pa.struct([part]))]))
    lake.append(TABLE, [{"id": "O0", "after": {"at": BORN}}])
    lake.append(TABLE, [{"id": "O1", "after": None}])
    lake.append(TABLE, [{"id": "O2", "after": {"at": BORN + 9 * DAY}}])

    first = read(tables, shape_of({}, time="after.at"), TimeBounds(start=None, end=BORN + DAY))

    assert first["key"].to_list() == ["O0", "O1"]
