"""Test that no class is imported that a table of others names, neither to read it nor to write to it."""

import sys
from pathlib import Path

import pytest
from pyiceberg.table import TableProperties

from makewhole.datasets.iceberg.catalog import load_table
from makewhole.datasets.iceberg.warehouse import WarehouseIO
from makewhole.datasets.iceberg.write import commit
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import RefusedError
from tests.world.iceberg_lake import Lake, rows_of
from tests.world.orders import orders

pytestmark = pytest.mark.integration

TABLE = "shop.orders"
PLANTED = """\
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.locations import SimpleLocationProvider
class Files(PyArrowFileIO): ...
class Places(SimpleLocationProvider): ...
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table of two orders, and a module that its owner may have put on the path."""
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    lake = Lake(folder=tmp_path)
    lake.make_table(TABLE)
    lake.append(TABLE, rows_of(orders(range(2))))
    return lake


def loaded(lake: Lake):  # type: ignore[no-untyped-def]
    sys.modules.pop("planted", None)  # its owner's own client has loaded it
    properties = lake._properties
    return load_table(IcebergConnection(id="lake", catalog="default", properties=properties), TABLE)


def test_a_table_is_read_by_our_class_whatever_it_names(lake: Lake) -> None:
    with lake.table(TABLE).transaction() as change:
        change.set_properties({"py-io-impl": "planted.Files"})

    table = loaded(lake)

    assert (type(table.io), "planted" in sys.modules) == (WarehouseIO, False)
    assert table.scan().to_arrow().num_rows == 2


def test_a_table_that_names_where_files_stand_by_a_class_is_not_written_to(lake: Lake) -> None:
    with lake.table(TABLE).transaction() as change:
        change.set_properties({TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL: "planted.Places"})
    table = loaded(lake)

    with pytest.raises(RefusedError, match="makewhole runs no code that a table names, and nothing was written"):
        commit.commit(table, added=[table.scan().to_arrow()])

    assert "planted" not in sys.modules
    assert loaded(lake).scan().to_arrow().num_rows == 2
