"""Test Iceberg tables whose files lie on S3 and on HDFS, and those of a REST catalogue, each on a real server."""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from makewhole.config.connections import from_environment
from makewhole.datasets.iceberg.catalog import load_table
from makewhole.datasets.iceberg.warehouse import files_below
from makewhole.kinds import tables_of
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.points import TablePoint
from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL, FOUND, MADE, trade_badly
from tests.world.iceberg_lake import Lake, in_order, rows_of
from tests.world.lake_systems import warehouse_settings
from tests.world.rest_catalogue import RestCatalogue
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(300)]


@pytest.fixture(scope="session")
def rest(server_folder: Path) -> Iterator[RestCatalogue]:
    """A REST catalogue."""
    with RestCatalogue(server_folder / "rest-catalogue") as server:
        yield server


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A catalogue of the test's own: with its warehouse on the system that the test is run for, or served by REST."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return Lake(folder=folder, settings=_settings(request.param, request))


def _settings(system: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
    if system == "rest":
        rest: RestCatalogue = request.getfixturevalue("rest")
        return {"type": "rest", "uri": rest.uri, "warehouse": str(rest.warehouse)}
    return warehouse_settings(system, request)


def warehouse_of(shop: IcebergShop) -> TablePoint:
    """Return the point of the warehouse."""
    point = shop.pipeline.points["warehouse"]
    assert isinstance(point, TablePoint)
    return point


EVERY = pytest.mark.parametrize("lake", ["s3", "hdfs", "rest"], indirect=True)


@EVERY
def test_a_window_is_repaired_certified_and_undone(shop: IcebergShop) -> None:
    """Takes long: the servers of each system are started."""
    shop.describe_lake(compensation=ALL)
    trade_badly(shop)
    before = shop.lake.rows(TABLE)

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == FOUND
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert (shop.refused(plan), shop.lake.rows(TABLE)) == ({}, in_order(rows_of(MADE)))
    assert shop.close(context).state is WindowState.CERTIFIED

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(TABLE)) == ({}, before)


@pytest.mark.parametrize("lake", ["s3", "hdfs", "hdfs service", "rest"], indirect=True)
def test_the_files_of_a_table_are_listed_as_the_table_names_them(shop: IcebergShop) -> None:
    shop.load(MADE[:3])
    shop.load(MADE[3:])
    connection = from_environment("lake")
    assert isinstance(connection, IcebergConnection)
    table = load_table(connection, TABLE)

    sizes = dict(files_below(table.io, table.location()))

    files = table.inspect.files().to_pylist()
    assert {file["file_path"]: file["file_size_in_bytes"] for file in files}.items() <= sizes.items()
    assert dict(files_below(table.io, f"{table.location()}/elsewhere")) == {}


@pytest.mark.parametrize("lake", ["s3"], indirect=True)
def test_a_refusal_to_read_the_files_is_reported_without_a_secret(
    shop: IcebergShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe_lake()
    shop.load(MADE)
    settings = {**shop.lake.settings, "s3.access-key-id": "wrong-key", "s3.secret-access-key": "wrong-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", replace(shop.lake, settings=settings).described)

    with pytest.raises(PermanentError) as caught:
        tables_of(from_environment("lake")).estimate_rows(warehouse_of(shop), None)

    assert str(caught.value).endswith("may not be used (OSError); give the user the right to")
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("lake", ["hdfs"], indirect=True)
def test_a_warehouse_that_does_not_answer_is_asked_again_later(shop: IcebergShop) -> None:
    shop.describe_lake()
    shop.load(MADE)
    catalogue = sqlite3.connect(shop.lake.folder / "catalog.db")
    with catalogue:
        moved = "replace(metadata_location, ?, 'hdfs://127.0.0.1:9')"
        place = "/".join(shop.lake.settings["warehouse"].split("/")[:3])
        catalogue.execute(f"update iceberg_tables set metadata_location = {moved}", [place])
    catalogue.close()

    with pytest.raises(TransientError, match=r"^dw\.warehouse at connection lake does not answer as it should"):
        tables_of(from_environment("lake")).estimate_rows(warehouse_of(shop), None)
