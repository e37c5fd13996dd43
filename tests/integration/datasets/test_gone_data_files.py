"""Test windows over Iceberg tables of which files were removed from the storage while their snapshot lists them: they
are named, what they may hold is not known, and the rest is judged."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import Table

from makewhole.config.connections import from_environment
from makewhole.kinds import tables_of
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.incident import IncidentKind
from makewhole.model.points import TablePoint
from makewhole.model.window import WindowState
from makewhole.tables.progress import SinkGroup
from makewhole.tables.reading import ReadBefore
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_faults import describe, key, newest_file, rows
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.integration.datasets.test_spoilt_data_files import HELD, LOST, MADE, TWICE, kinds
from tests.world.iceberg_java import JavaIceberg
from tests.world.iceberg_lake import ORDERS, Lake, in_order, rows_of
from tests.world.lake_systems import warehouse_settings
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Restore = Callable[[], None]
WAITING = dict.fromkeys(["O2", "O6", "O7", "O8", "O9", "O10", "O11"], HELD)
"""O2 may be in a file that holds O10 to O9 by its manifest; O0 cannot be."""
CERTAIN = {"O0": LOST, "O4": TWICE}


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A catalogue of the test's own, with its warehouse on the system that the test is run for."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return Lake(folder=folder, settings=warehouse_settings(getattr(request, "param", "folder"), request))


EVERY = pytest.mark.parametrize(
    "lake", ["folder", *(pytest.param(system, marks=pytest.mark.extended) for system in ("s3", "hdfs"))], indirect=True
)


def remove(shop: IcebergShop, path: str) -> Restore:
    """Remove a file of the warehouse, as one who knows nothing of the table; return how to bring it back."""
    io = shop.lake.table(TABLE).io
    with io.new_input(path).open() as file:
        content = file.read()
    io.delete(path)

    def restore() -> None:
        with io.new_output(path).create(overwrite=True) as file:
            file.write(content)

    return restore


def write(shop: IcebergShop) -> None:
    """Send orders, and write their rows but for O0 and O2; O4 is there twice."""
    shop.lake.make_table(TABLE, ORDERS)
    shop.send(MADE)
    shop.load([MADE[1], *MADE[3:6]])
    shop.load([MADE[4]])
    shop.load(MADE[6:])


def newest_snapshot(table: Table) -> int:
    """Return the number of the current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def newest_list(shop: IcebergShop) -> tuple[int, str]:
    """Return the number of the current snapshot, and the path of the manifest that it brought."""
    table = shop.lake.table(TABLE)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    [own] = [
        manifest for manifest in snapshot.manifests(table.io) if manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    return snapshot.snapshot_id, own.manifest_path


@EVERY
def test_what_a_data_file_that_is_gone_may_hold_is_not_known_and_the_rest_is_judged(shop: IcebergShop) -> None:
    shop.describe_lake()
    write(shop)
    path = newest_file(shop)
    restore = remove(shop, path)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {**CERTAIN, **WAITING}
    [doubt] = shop.evidence(context, STORE_HOP, "O7")["in_doubt"]
    assert (doubt["gid"], doubt["unreadable"]) == (path, True)
    assert (closed.state, kinds(shop, context)) == (WindowState.NOT_KNOWN, {
        IncidentKind.UNREADABLE_FILES, IncidentKind.PREPARED_TRANSACTION
    })  # fmt: skip
    reason = str(closed.reason)
    assert f"1 file of warehouse ({TABLE}) cannot be read: {path} (listed " in reason
    assert f" by snapshot {newest_snapshot(shop.lake.table(TABLE))}; it is gone). What it holds is not known" in reason
    assert "Restore what is gone. Where it is lost for good, take it out of the table" in reason
    restore()
    assert shop.found(shop.judged(), STORE_HOP) == {**CERTAIN, "O2": LOST}


@EVERY
def test_rows_of_a_file_that_is_lost_for_good_are_repaired_once_the_table_lists_it_no_longer(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    write(shop)
    remove(shop, newest_file(shop))
    assert shop.found(shop.judge_and_ask_the_gate(), STORE_HOP) == {**CERTAIN, **WAITING}
    table = shop.lake.table(TABLE)
    [lost] = [task.file for task in table.scan().plan_files() if task.file.record_count == 6]
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        change.delete_data_file(lost)
    before = shop.lake.rows(TABLE)

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {**CERTAIN, **dict.fromkeys(WAITING, LOST)}
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert (shop.refused(plan), shop.lake.rows(TABLE)) == ({}, in_order(rows_of(MADE)))
    assert shop.close(context).state is WindowState.CERTIFIED

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(TABLE)) == ({}, before)


@EVERY
def test_every_key_that_is_missing_may_be_in_the_files_of_a_manifest_that_is_gone(shop: IcebergShop) -> None:
    shop.describe_lake()
    write(shop)
    snapshot, path = newest_list(shop)
    restore = remove(shop, path)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O4": TWICE, "O0": HELD, **WAITING}
    assert closed.state is WindowState.NOT_KNOWN
    assert f"cannot be read: {path} (listed " in str(closed.reason)
    assert f" by snapshot {snapshot}; it is gone)" in str(closed.reason)
    restore()
    assert shop.found(shop.judged(), STORE_HOP) == {**CERTAIN, "O2": LOST}


@EVERY
def test_a_table_without_its_list_of_manifests_or_its_metadata_is_named_at_once(shop: IcebergShop) -> None:
    shop.describe_lake()
    write(shop)
    table = shop.lake.table(TABLE)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    restore = remove(shop, table.metadata_location)
    with pytest.raises(RefusedError, match=r"is gone, the metadata of dw\.warehouse: nothing is known") as caught:
        shop.open()
    assert str(caught.value).startswith(table.metadata_location)
    restore()
    context = shop.open()
    restore = remove(shop, snapshot.manifest_list)
    with pytest.raises(
        RefusedError, match=rf"a list of files of snapshot {snapshot.snapshot_id} of dw\.warehouse"
    ) as refused:
        shop.snapshot(context)
    assert str(refused.value).startswith(snapshot.manifest_list)
    restore()
    assert shop.found(shop.judged(), STORE_HOP) == {**CERTAIN, "O2": LOST}


@pytest.mark.extended
def test_rows_of_a_file_whose_deletes_are_gone_are_not_known(shop: IcebergShop) -> None:
    """Takes long: a JVM is started. Pyiceberg does not read of which data file a deletion vector is: it may be of each
    that was there before."""
    shop.describe_lake()
    write(shop)
    path = newest_file(shop)
    with JavaIceberg(shop.lake) as java:
        java.raise_format(TABLE, 3)
        java.delete_rows(TABLE, path, [1, 2])
    table = shop.lake.table(TABLE)
    [deletes] = table.inspect.delete_files().to_pylist()
    assert shop.found(shop.judged(), STORE_HOP) == {**CERTAIN, "O2": LOST, "O7": LOST, "O8": LOST}
    restore = remove(shop, deletes["file_path"])

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O0": LOST, **WAITING, **dict.fromkeys(["O1", "O3", "O4", "O5"], HELD)}
    assert closed.state is WindowState.NOT_KNOWN
    assert f"cannot be read: {deletes['file_path']} (listed " in str(closed.reason)
    restore()
    assert shop.found(shop.judged(), STORE_HOP) == {**CERTAIN, "O2": LOST, "O7": LOST, "O8": LOST}


def test_positions_that_are_missing_wait_for_a_file_that_is_gone(shop: IcebergShop) -> None:
    """All of them: pyiceberg writes no statistics of the parts of a column into a manifest."""
    describe(shop)
    made = rows(shop)
    shop.lake.append(TABLE, [*made[:2], *made[3:5]])
    shop.lake.append(TABLE, [made[0]])
    shop.lake.append(TABLE, made[5:])
    remove(shop, newest_file(shop))

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {key(0): TWICE, **dict.fromkeys(map(key, [2, *range(5, 8)]), HELD)}
    assert closed.state is WindowState.NOT_KNOWN


def test_a_plan_stops_at_once_at_a_file_that_is_gone_since(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[3:]])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    path = newest_file(shop)
    restore = remove(shop, path)
    before = newest_snapshot(shop.lake.table(TABLE))

    with pytest.raises(RefusedError, match=rf"^{path} of dw\.warehouse is gone, and snapshot {before} lists it"):
        shop.run(context, plan)
    assert newest_snapshot(shop.lake.table(TABLE)) == before
    restore()
    shop.run(context, plan)
    assert (shop.refused(plan), shop.lake.rows(TABLE)) == ({}, in_order(rows_of(MADE)))


def test_a_plan_and_the_progress_of_a_sink_stop_at_once_at_a_list_that_is_gone(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL)
    shop.send(MADE)
    shop.load([*MADE[:2], *MADE[3:]])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    snapshot, path = newest_list(shop)
    restore = remove(shop, path)
    store = shop.pipeline.points["warehouse"]
    assert isinstance(store, TablePoint)

    with pytest.raises(RefusedError, match=rf"^{path} of dw\.warehouse is gone, and snapshot {snapshot} lists it"):
        shop.run(context, plan)
    with pytest.raises(
        RefusedError, match=rf"^{path} is gone, a list of files of snapshot {snapshot} of dw\.warehouse"
    ):
        tables_of(from_environment("lake")).sink_commit(store, SinkGroup(name="sink", control_topic="control"))
    restore()
    shop.run(context, plan)
    assert (shop.refused(plan), shop.lake.rows(TABLE)) == ({}, in_order(rows_of(MADE)))


def test_a_file_that_is_gone_since_an_earlier_revision_makes_the_table_be_read_again(shop: IcebergShop) -> None:
    shop.describe_lake()
    write(shop)
    context = shop.judge_and_ask_the_gate()
    path = newest_file(shop)
    point = shop.pipeline.points["warehouse"]
    assert isinstance(point, TablePoint)
    tables, shape = tables_of(from_environment("lake")), context.table_shape(point)
    with tables.hold_view(shape) as view:
        before = ReadBefore(mark=view.mark(None), seen=view.seen, rows=11)
        assert view.why_not_same(None, before) is None
        remove(shop, path)
        assert view.why_not_same(None, before) == f"{path} is gone"

    assert shop.found(shop.judge_and_ask_the_gate(), STORE_HOP) == {**CERTAIN, **WAITING}


def test_a_file_of_a_snapshot_that_is_expired_while_it_is_read_is_read_again(shop: IcebergShop) -> None:
    shop.describe_lake()
    write(shop)
    point = shop.pipeline.points["warehouse"]
    assert isinstance(point, TablePoint)
    tables, shape = tables_of(from_environment("lake")), shop.open().table_shape(point)
    with tables.hold_view(shape) as view:
        plan = view.plan(None, 1)
        frames = tables.reader(shape, plan.view).part(None, plan.parts[0])
        next(frames)
        table = shop.lake.table(TABLE)
        old = newest_snapshot(table)
        table.overwrite(table.scan().to_arrow())
        shop.lake.table(TABLE).maintenance.expire_snapshots().by_id(old).commit()
        table.io.delete(plan.parts[0][-1].file.file_path)

        with pytest.raises(TransientError, match=rf"^snapshot {old} of dw\.warehouse was expired while it was read"):
            list(frames)
