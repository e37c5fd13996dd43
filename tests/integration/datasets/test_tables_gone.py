"""Test windows over Iceberg tables that were dropped, renamed or replaced: what became of them is said, and nothing is
judged, repaired or tried again."""

import re
from collections.abc import Callable

import pytest

from makewhole.model.errors import ConfigurationError, PermanentError
from makewhole.model.window import WindowState
from makewhole.window.readiness.mistakes import Readiness, Weight
from makewhole.window.readiness.points import look_at_points
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_lake import rows_of
from tests.world.orders import orders
from tests.world.pipeline_file import dataset
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(8))
LATER = orders(range(100, 104), 1)
MOVED = "dw.moved"
GONE = f"there is no table {TABLE} in the catalogue of connection lake"


def uuid_of(shop: IcebergShop, name: str = TABLE) -> str:
    """Return the uuid of a table."""
    return str(shop.lake.table(name).metadata.table_uuid)


def read_once(shop: IcebergShop) -> tuple[str, int]:
    """Certify the first window; return the uuid and the snapshot that it read. The records of a second one are sent."""
    shop.describe_lake(compensation=ALL)
    shop.send(MADE)
    shop.load(MADE)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send(LATER)
    snapshot = shop.lake.table(TABLE).current_snapshot()
    assert snapshot is not None
    return uuid_of(shop), snapshot.snapshot_id


def problem(shop: IcebergShop, day: int = 1) -> str:
    """Open a window in vain; return the only problem, which the list of `check --live` has, too."""
    with pytest.raises(ConfigurationError) as refused:
        shop.open(day)
    [wrong] = refused.value.problems
    readiness = Readiness()
    look_at_points(readiness, shop.pipeline)
    assert readiness.of(Weight.WRONG) == (wrong,)
    return str(wrong)


def test_a_dropped_table_is_named_with_the_snapshot_that_was_read_last(shop: IcebergShop) -> None:
    uuid, snapshot = read_once(shop)
    shop.lake.catalog.drop_table(TABLE)

    assert problem(shop) == (
        f"pipeline file: points.warehouse.table: {GONE} any more. "
        f"The windows before read {uuid}: its snapshot {snapshot} was read last. Restore it (`register_table` of a "
        "catalogue takes the newest of its metadata files, as long as these were not removed with it), or correct its "
        "name"
    )


def test_a_renamed_table_is_found_under_its_new_name(shop: IcebergShop) -> None:
    uuid, snapshot = read_once(shop)
    shop.lake.catalog.rename_table(TABLE, MOVED)

    assert problem(shop) == (
        f"pipeline file: points.warehouse.table: {GONE} any more. "
        f"The windows before read {uuid}, which is {MOVED} now: its snapshot {snapshot} was read last. Write "
        f"`table: {MOVED}`, or give it its former name back"
    )
    shop.describe_lake(table=MOVED)
    shop.lake.append(MOVED, rows_of(LATER))
    context, closed = shop.whole_way(1)
    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_another_table_of_the_name_is_judged_only_once_the_file_says_that_it_is_the_one(shop: IcebergShop) -> None:
    uuid, snapshot = read_once(shop)
    shop.lake.catalog.rename_table(TABLE, MOVED)
    shop.lake.make_table(TABLE)
    now = uuid_of(shop)

    assert problem(shop) == (
        f"pipeline file: points.warehouse.table: {TABLE} is another table than the windows before read. Its uuid is "
        f"{now}, and they read {uuid}, which is {MOVED} now: its snapshot {snapshot} was read last. Put that one back "
        f"under its name; or, if it was replaced on purpose, write `uuid: {now}`: its rows are judged as they are "
        "then, and what it lacks is missing"
    )
    shop.describe_lake(warehouse=dataset("lake", TABLE, uuid=now))
    shop.load(LATER[1:])
    assert shop.found(shop.judged(1), STORE_HOP) == {"O100": ("missing", "lost_after_topic")}
    shop.describe_lake(warehouse=dataset("lake", TABLE, uuid=uuid))
    with pytest.raises(ConfigurationError) as refused:
        shop.open(2)
    assert str(refused.value) == (
        f"pipeline file: points.warehouse.uuid: {TABLE} has the uuid {now}, and is not the table {uuid} that the file "
        f"names. Put that one back, or write `uuid: {now}`"
    )


def test_a_table_that_is_put_back_is_judged_as_ever(shop: IcebergShop) -> None:
    read_once(shop)
    metadata = shop.lake.table(TABLE).metadata_location
    shop.lake.catalog.drop_table(TABLE)
    problem(shop)
    shop.lake.catalog.register_table(TABLE, metadata)
    shop.load(LATER)

    context, closed = shop.whole_way(1)

    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def drop(shop: IcebergShop) -> None:
    """Drop the table."""
    shop.lake.catalog.drop_table(TABLE)


def replace(shop: IcebergShop) -> None:
    """Make another table of its name, empty."""
    shop.lake.make_table(TABLE)


MEANWHILE = pytest.mark.parametrize(
    ("happens", "said"),
    [
        (drop, GONE),
        (replace, f"{TABLE} is another table than when the window was opened"),
    ],
)


@MEANWHILE
def test_a_table_that_goes_before_it_is_read_leaves_no_row_missing_and_is_not_tried_again(
    shop: IcebergShop, happens: Callable[[IcebergShop], None], said: str
) -> None:
    read_once(shop)
    context = shop.open(1)
    happens(shop)

    with pytest.raises(PermanentError, match=re.escape(said)):
        shop.snapshot(context)


@MEANWHILE
def test_a_table_that_goes_before_an_absence_is_confirmed_leaves_no_row_missing_and_is_not_tried_again(
    shop: IcebergShop, happens: Callable[[IcebergShop], None], said: str
) -> None:
    """Its rows that came late would be gone, and a repair would write them into another table."""
    read_once(shop)
    shop.load(LATER[1:])
    context = shop.open(1)
    shop.snapshot(context)
    happens(shop)

    with pytest.raises(PermanentError, match=re.escape(said)):
        shop.reconcile(context)


@MEANWHILE
def test_a_plan_writes_nothing_into_another_table(
    shop: IcebergShop, happens: Callable[[IcebergShop], None], said: str
) -> None:
    read_once(shop)
    shop.load(LATER[1:])
    context = shop.judge_and_ask_the_gate(1)
    plan = shop.planned(context)
    shop.approve(plan)
    happens(shop)

    with pytest.raises(PermanentError, match=re.escape(said)):
        shop.run(context, plan)
    if happens is replace:
        assert shop.lake.rows(TABLE) == []
