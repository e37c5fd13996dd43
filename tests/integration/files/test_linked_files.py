"""Test that files and folders which lie elsewhere, and are linked into a dataset, count as readers take them."""

import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from makewhole.datasets.files.write.commit_files import ON_ANOTHER_DISK
from makewhole.datasets.files.write.forecast import FilesForecaster
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.model.errors import RefusedError, TransientError
from makewhole.tables.items import UpsertRow
from tests.integration.files.test_files_reading import ids, keys, shape_of
from tests.integration.files.test_files_windows import MADE
from tests.integration.files.test_files_writer import chunk_of, fill, items_of, nothing, point_of
from tests.world.files_lake import ORDERS, FilesPlace, parquet_bytes, rows_of

pytestmark = pytest.mark.integration


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the dataset, as on another disk."""
    return tmp_path_factory.mktemp("disk")


def test_folders_and_files_that_are_linked_count_once(place: FilesPlace, elsewhere: Path) -> None:
    """A link to a folder of the dataset itself is another name of rows that are there once."""
    root = Path(place.store.root)
    place.add("day=1/a.parquet", rows_of(MADE[:2]))
    (elsewhere / "day").mkdir()
    (elsewhere / "day/b.parquet").write_bytes(parquet_bytes(rows_of(MADE[2:4])))
    (elsewhere / "c.parquet").write_bytes(parquet_bytes(rows_of(MADE[4:6])))
    (elsewhere / "day/again").symlink_to(elsewhere / "day")
    (root / "day=2").symlink_to(elsewhere / "day")
    (root / "day=1/c.parquet").symlink_to(elsewhere / "c.parquet")
    (root / "latest").symlink_to(root / "day=1")
    (root / "day=1/up").symlink_to(root)

    assert place.names() == ["day=1/a.parquet", "day=1/c.parquet", "day=2/b.parquet"]
    assert keys(place, shape_of(place)) == ids(0, 6)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_linked_folder_is_listed_beside_a_link_to_what_holds_it(
    place: FilesPlace, elsewhere: Path, names: tuple[str, str]
) -> None:
    """One leads to a folder above the dataset, which is not read; or to a folder within one that is linked, too."""
    root = Path(place.store.root)
    root.mkdir(exist_ok=True)
    (elsewhere / "year/day").mkdir(parents=True)
    (elsewhere / "year/day/b.parquet").write_bytes(parquet_bytes(rows_of(MADE[:2])))
    inner, outer = names
    (root / inner).symlink_to(elsewhere / "year/day")
    (root / outer).symlink_to(elsewhere / "year")
    assert place.names() == [f"{outer}/day/b.parquet"]
    (root / outer).unlink()
    (root / outer).symlink_to(root.parent)
    assert place.names() == [f"{inner}/b.parquet"]
    (root / outer).unlink()
    (root / outer).symlink_to(elsewhere / "year/day")
    assert place.names() == ["a/b.parquet"]


def test_a_folder_beside_one_that_is_linked_above_the_dataset_is_listed(place: FilesPlace) -> None:
    root = Path(place.store.root)
    root.mkdir(exist_ok=True)
    beside = root.parent / "beside"
    beside.mkdir()
    (beside / "c.parquet").write_bytes(parquet_bytes(rows_of(MADE[:2])))
    (root / "a").symlink_to(root.parent)
    (root / "b").symlink_to(beside)
    assert place.names() == ["b/c.parquet"]


@pytest.mark.parametrize("name", ["day=2", "c.parquet"])
def test_a_link_to_what_is_not_there_is_no_absence(place: FilesPlace, elsewhere: Path, name: str) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    link = Path(place.store.root, name)
    link.symlink_to(elsewhere / "gone")
    with pytest.raises(TransientError) as raised:
        keys(place, shape_of(place))
    assert str(raised.value) == (
        f"{link} is a link, and {elsewhere}/gone, to which it leads, is not there: mount what that lies on, or remove "
        "the link; then try again"
    )


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on another disk than the dataset."""
    for disk in ("/dev/shm", "/var/tmp"):
        with TemporaryDirectory(dir=disk) as name:
            if Path(name).stat().st_dev != tmp_path.stat().st_dev:
                yield Path(name)
                return
    pytest.skip("this machine has one disk")


@pytest.mark.parametrize("linked", ["a.parquet", "day"])
def test_file_on_another_disk_is_refused_and_others_are_written(
    place: FilesPlace, other_disk: Path, linked: str
) -> None:
    """O6 differs in a file that is linked, or lies in a linked folder; O2 is new."""
    point, root = point_of(place), Path(place.store.root)
    fill(place)
    away = other_disk / "a.parquet"
    shutil.move(root / "a.parquet", away)
    (root / linked).symlink_to(away if linked == "a.parquet" else other_disk)
    items, before = items_of(place, point)[:2], away.read_bytes()

    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)

    assert dict(receipt.refused) == {1: ON_ANOTHER_DISK}
    assert away.read_bytes() == before
    assert [row["id"] for row in place.rows()].count("O2") == 1
    assert not any("staged" in name for name in place.names())
    forecaster = FilesForecaster(connection=place.connection, point=point)
    again = forecaster.forecast_chunk(point, chunk_of(plan="shop-2-0123456789ab"), items[1:2], lambda _: ())
    assert again.refused == {1: ON_ANOTHER_DISK}


def test_new_row_of_a_folder_on_another_disk_is_refused(place: FilesPlace, other_disk: Path) -> None:
    point, root = point_of(place), Path(place.store.root)
    without_region = pa.schema([field for field in ORDERS if field.name != "region"])
    root.mkdir(parents=True, exist_ok=True)
    (root / "region=EU").symlink_to(other_disk)
    place.add("region=EU/a.parquet", [], without_region)
    item = UpsertRow(seq=0, key="O2", key_columns=("id",), columns=tuple(MADE[2]), value=json.dumps(MADE[2]), before=())
    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), [item], nothing)
    assert dict(receipt.refused) == {0: ON_ANOTHER_DISK}
    assert [path.name for path in other_disk.iterdir()] == ["a.parquet"]


def test_file_behind_a_link_is_replaced_where_it_lies(place: FilesPlace, elsewhere: Path) -> None:
    point, root = point_of(place), Path(place.store.root)
    fill(place)
    shutil.move(root / "a.parquet", elsewhere / "a.parquet")
    (root / "a.parquet").symlink_to(elsewhere / "a.parquet")
    items = items_of(place, point)

    receipt = FilesWriter(connection=place.connection, point=point).write_chunk(point, chunk_of(), items, nothing)

    assert dict(receipt.refused) == {}
    assert place.rows() == sorted(rows_of(MADE), key=str)
    assert (root / "a.parquet").is_symlink()
    amounts = {row["id"]: row["amount"] for row in pq.read_table(elsewhere / "a.parquet").to_pylist()}
    assert amounts["O6"] == Decimal(MADE[6]["amount"])


def test_move_to_another_disk_is_never_tried_again(place: FilesPlace, other_disk: Path) -> None:
    place.add("a.parquet", rows_of(MADE[:2]))
    (Path(place.store.root) / "day").symlink_to(other_disk)
    for is_new in (True, False):
        with pytest.raises(
            RefusedError, match=r"day/b\.parquet lies on another disk than .*: no file can be moved there"
        ):
            place.store.move("a.parquet", "day/b.parquet", is_new=is_new)
    assert place.names() == ["a.parquet"]
