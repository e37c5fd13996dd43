"""Test Iceberg tables with branches, as those have who write, audit and then publish: what counts is `main`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_faults import LOST, describe, key, outside, repair, rows
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

BRANCH = "audited"


def make_branch(shop: IcebergShop) -> None:
    """Make a branch of what the table has now."""
    table = shop.lake.table(TABLE)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_branch(snapshot.snapshot_id, BRANCH).commit()


def append_to_branch(shop: IcebergShop, some: Sequence[Mapping[str, Any]]) -> int:
    """Append rows to the branch alone; return the number of its snapshot."""
    table = shop.lake.table(TABLE)
    table.append(pa.Table.from_pylist(list(some), schema=table.schema().as_arrow()), branch=BRANCH)
    return table.metadata.refs[BRANCH].snapshot_id


def put_in_place(shop: IcebergShop) -> None:
    """Make the branch what `main` is, whatever that got meanwhile."""
    shop.lake.table(TABLE).manage_snapshots().set_current_snapshot(ref_name=BRANCH).commit()


def test_rows_that_a_branch_put_in_the_place_of_main_has_not_are_missing_and_named(shop: IcebergShop) -> None:
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, made[:3])
    make_branch(shop)
    shop.lake.append(TABLE, made[3:6])
    left = shop.lake.table(TABLE).metadata.current_snapshot_id
    published = append_to_branch(shop, made[6:])
    put_in_place(shop)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(number): LOST for number in (3, 4, 5)}
    [row] = outside(shop, context, 4)
    assert (row["reason"], row["snapshot"], row["operation"]) == ("not_in_history", str(left), "append")
    assert row["place"].endswith(f":1 (snapshot {left})")
    repair(shop, context)
    assert shop.lake.table(TABLE).metadata.refs[BRANCH].snapshot_id == published


def test_rows_that_a_branch_alone_has_are_missing_and_named_until_it_is_published(shop: IcebergShop) -> None:
    describe(shop, orphans="adopt")
    made = rows(shop)
    shop.lake.append(TABLE, made[:6])
    make_branch(shop)
    alone = append_to_branch(shop, made[6:])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {key(6): LOST, key(7): LOST}
    [row] = outside(shop, context, 7)
    assert (row["reason"], row["snapshot"]) == ("not_in_history", str(alone))
    repair(shop, context)
    put_in_place(shop)
    assert shop.certify(shop.judge_and_ask_the_gate()).state is WindowState.CERTIFIED
