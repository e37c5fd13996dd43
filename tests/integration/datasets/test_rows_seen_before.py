"""Test which rows of an Iceberg table an earlier view had seen: not those that came back, nor those it had to leave
out."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from makewhole.model.window import TimeSlice
from makewhole.tables.reading import UnreadableFile
from makewhole.tables.shape import EarlierRows, TimeBounds
from makewhole.tables.tables import Tables
from makewhole_spark.snapshot.read_tables import plans_of_one_view
from tests.integration.datasets.test_iceberg_tables import TABLE, read, remove_position, shape_of
from tests.world.iceberg_lake import Lake, rows_of
from tests.world.orders import BORN, DAY, orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def late(tables: Tables, seen: str) -> Sequence[str]:
    """Return the keys of rows that a next window reads as such as came late."""
    earlier = EarlierRows(start=BORN - DAY, end=BORN + DAY, seen_before=seen)
    bounds = TimeBounds(start=BORN + DAY, end=BORN + 2 * DAY, seen_before=seen, earlier=(earlier,))
    frame = read(tables, shape_of(), bounds)
    return frame["key"].to_list() if len(frame) else []


def seen_by(tables: Tables) -> str:
    """Return what a view has seen that leaves out what cannot be read."""
    shape = shape_of()
    with tables.hold_view(shape) as view:
        while True:
            plan, unreadable = view.plan(None, 1), list[UnreadableFile]()
            for part in plan.parts:
                reader = tables.reader(shape, plan.view)
                list(reader.part(None, part))
                unreadable += reader.unreadable
            if not unreadable:
                return plan.seen
            view.leave_out(unreadable)


def current(lake: Lake) -> int:
    """Return the number of the current snapshot."""
    snapshot = lake.table(TABLE).current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def forget(lake: Lake, snapshot: int) -> None:
    """Expire a snapshot."""
    lake.table(TABLE).maintenance.expire_snapshots().by_id(snapshot).commit()


def without(path: Path, see: Callable[[], str]) -> str:
    """Return what is seen while a file is away."""
    content = path.read_bytes()
    path.unlink()
    seen = see()
    path.write_bytes(content)
    return seen


def test_a_row_whose_delete_was_taken_back_since_is_new(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    """The others of its file are read once more: nothing tells them apart."""
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(orders(range(3))))
    with_row, [path] = current(lake), table.inspect.files()["file_path"].to_pylist()
    remove_position(lake.table(TABLE), tmp_path, str(path), [1])
    seen = seen_by(tables)
    assert late(tables, seen) == []

    with lake.table(TABLE).manage_snapshots() as manage:
        manage.rollback_to_snapshot(with_row)

    assert late(tables, seen) == ["O0", "O1", "O2"]


def test_rows_whose_deletes_were_gone_are_new_once_these_are_back(lake: Lake, tables: Tables, tmp_path: Path) -> None:
    lake.make_table(TABLE)
    table = lake.append(TABLE, rows_of(orders(range(3))))
    [path] = table.inspect.files()["file_path"].to_pylist()
    remove_position(lake.table(TABLE), tmp_path, str(path), [1])
    seen, snapshot = without(tmp_path / "deletes.parquet", lambda: seen_by(tables)), current(lake)
    lake.append(TABLE, rows_of(orders([5])))
    assert late(tables, seen) == ["O0", "O2", "O5"]

    forget(lake, snapshot)

    assert late(tables, seen) == ["O0", "O2", "O5"]


def test_rows_of_a_list_that_was_gone_are_new_once_it_is_back(lake: Lake, tables: Tables) -> None:
    """Nothing tells any more which files the list of an expired snapshot had."""
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders([0])))
    table = lake.append(TABLE, rows_of(orders([1])))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    lists = snapshot.manifests(table.io)
    [path] = [manifest.manifest_path for manifest in lists if manifest.added_snapshot_id == snapshot.snapshot_id]
    seen = without(Path(path.removeprefix("file://")), lambda: seen_by(tables))
    lake.append(TABLE, rows_of(orders([5])))
    assert late(tables, seen) == ["O1", "O5"]

    forget(lake, snapshot.snapshot_id)

    assert late(tables, seen) == ["O0", "O1", "O5"]


@pytest.mark.parametrize(("version", "new"), [("2", ["O5"]), ("1", ["O0", "O5"])])
def test_rows_are_known_by_their_commits_where_the_lists_of_a_view_are_gone(
    lake: Lake, tables: Tables, version: str, new: Sequence[str]
) -> None:
    """In the first format commits have no numbers, and all rows count as late ones."""
    lake.make_table(TABLE, properties={"format-version": version})
    table = lake.append(TABLE, rows_of(orders([0])))
    seen, snapshot = seen_by(tables), table.current_snapshot()
    assert snapshot is not None
    lake.append(TABLE, rows_of(orders([5])))

    Path(snapshot.manifest_list.removeprefix("file://")).unlink()

    assert late(tables, seen) == new


@pytest.mark.parametrize("seen", ["748:748:", "q6urq6urq6s="], ids=["of PostgreSQL", "of files"])
def test_what_was_seen_of_a_table_of_another_kind_hides_no_row(lake: Lake, tables: Tables, seen: str) -> None:
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders([0])))

    assert late(tables, seen) == ["O0"]
    with tables.hold_view(shape_of()) as view:
        assert view.count_new_rows(TimeSlice(window=1, start=BORN, end=BORN + DAY), seen) == 1


def test_a_list_that_only_the_rows_of_keys_need_is_left_out_by_the_whole_view(lake: Lake, tables: Tables) -> None:
    """Otherwise the rows of its files, once it is back, would look as if the view had seen that they are not there."""
    lake.make_table(TABLE)
    with lake.table(TABLE).update_spec() as update:
        update.add_identity("at")
    lake.append(TABLE, rows_of(orders([0])))
    table = lake.append(TABLE, rows_of([{**orders([5])[0], "at": (BORN + 9 * DAY).isoformat()}]))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    lists = snapshot.manifests(table.io)
    [path] = [manifest.manifest_path for manifest in lists if manifest.added_snapshot_id == snapshot.snapshot_id]
    file, bounds = Path(path.removeprefix("file://")), TimeBounds(start=BORN, end=BORN + DAY)
    content = file.read_bytes()
    file.unlink()

    with tables.hold_view(shape_of()) as view:
        assert view.plan(bounds, 1).unreadable == ()
        plan, of_keys = plans_of_one_view(view, bounds, 1, is_by_keys=True)
    assert plan.view == of_keys.view
    assert plan.seen == of_keys.seen
    assert [skipped.path for skipped in plan.unreadable] == [path]
    assert plans_of_one_view(view, bounds, 1, is_by_keys=False)[1].parts == plan.parts

    file.write_bytes(content)

    assert [key for frame in tables.reader(shape_of()).keys(["O5"], plan.seen) for key in frame["key"]] == ["O5"]
