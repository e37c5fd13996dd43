"""Test that files and folders which lie elsewhere, and are linked into a dataset, count as readers take them."""

from pathlib import Path

import pytest

from makewhole.model.errors import TransientError
from tests.integration.files.test_files_reading import ids, keys, shape_of
from tests.integration.files.test_files_windows import MADE
from tests.world.files_lake import FilesPlace, parquet_bytes, rows_of

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
