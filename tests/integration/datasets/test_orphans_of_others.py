"""Test that files of other tables and datasets below an Iceberg table's location are not taken for its own."""

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_faults import LOST, POSITIONED, adopted, describe, key, outside, rows
from tests.integration.datasets.test_iceberg_positions import without_stamp
from tests.world.combinations import with_every_change
from tests.world.iceberg_lake import in_order
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

INNER = "dw.inner"


def written_by_record(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a repaired table of which the last three were written from their records."""
    return in_order([*made[:5], *map(without_stamp, made[5:])])


@pytest.mark.parametrize("below", with_every_change(["data/inner", "inner"], first=1))
def test_file_of_a_table_below_another_one_is_not_adopted(shop: IcebergShop, below: str) -> None:
    """The inner table has the very rows that are missing in the outer one."""
    describe(shop, orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:5])
    shop.lake.make_table(INNER, POSITIONED, location=f"{shop.lake.table(TABLE).location()}/{below}")
    shop.lake.append(INNER, made[5:])
    held = shop.lake.table(INNER).inspect.files()["file_path"].to_pylist()

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {key(number): LOST for number in (5, 6, 7)}
    assert [outside(shop, context, number) for number in (5, 6, 7)] == [[], [], []]
    state = adopted(shop, context)

    assert state["rows"] == written_by_record(made)
    assert not {str(path).rpartition("/")[2] for path in held} & set(state["files"])
    assert shop.lake.rows(INNER) == in_order(made[5:])


@pytest.mark.parametrize(
    ("where", "properties"), [("exports", {}), ("shared", {"write.data.path": "{warehouse}/shared"})], ids=str
)
def test_file_outside_the_folder_of_the_tables_own_data_is_named_and_not_adopted(
    shop: IcebergShop, where: str, properties: Mapping[str, str]
) -> None:
    """A folder of files, as a dataset of its own, or one into which several tables write."""
    describe(shop, orphans="adopt")
    made, table = rows(shop), shop.lake.table(TABLE)
    warehouse = f"file://{shop.lake.folder}/warehouse"
    with table.transaction() as change:
        change.set_properties({name: value.format(warehouse=warehouse) for name, value in properties.items()})
    shop.lake.append(TABLE, made[:5])
    place = f"{warehouse}/shared" if properties else f"{table.location()}/{where}"
    with table.io.new_output(f"{place}/lost.parquet").create() as file:
        pq.write_table(pa.Table.from_pylist(made[5:], schema=table.schema().as_arrow()), cast(Any, file))

    context = shop.judge_and_ask_the_gate()
    assert [[row["reason"] for row in outside(shop, context, number)] for number in (5, 6, 7)] == [["unlisted"]] * 3
    state = adopted(shop, context)

    assert state["rows"] == written_by_record(made)
    assert "lost.parquet" not in state["files"]
