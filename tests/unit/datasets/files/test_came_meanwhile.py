"""Test look-ups of keys in a dataset whose first file comes while it is looked at."""

from pathlib import Path
from typing import Any

import pytest

from makewhole.datasets.files import reading
from makewhole.datasets.files.describe import existing
from makewhole.datasets.files.reading import FilesReader
from makewhole.model.errors import ConfigurationError, TransientError
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint
from makewhole.tables.shape import TableShape
from tests.world.files_lake import FilesPlace, rows_of
from tests.world.orders import orders

pytestmark = pytest.mark.unit

PLACE = DatasetPlace(format="parquet")
POINT = TablePoint(name="files", kind=PointKind.STORE, connection="lake", table="/dw", key=("id",), dataset=PLACE)
SHAPE = TableShape(point=POINT, compare={}, filters={})


def test_no_key_is_missing_where_the_first_file_came_between_two_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer takes its files away, and puts others in their place."""
    place = FilesPlace(path="/dw", fields={"conn_type": "fs", "extra": {"path": str(tmp_path)}})
    (tmp_path / "dw").mkdir()

    def come(*asked: Any) -> Any:
        place.add("a.parquet", rows_of(orders([1])))
        return existing(*asked)

    with pytest.raises(ConfigurationError):
        list(FilesReader(place.connection, SHAPE, None).keys(["O1"]))
    monkeypatch.setattr(reading, "existing", come)
    with pytest.raises(TransientError, match="came while they were listed"):
        list(FilesReader(place.connection, SHAPE, None).keys(["O1"]))
    [frame] = FilesReader(place.connection, SHAPE, None).keys(["O1"])
    assert frame["key"].to_list() == ["O1"]
