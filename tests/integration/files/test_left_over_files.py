"""Test that windows name the files beside a dataset which no reader has taken for a long time."""

import os
import time
from pathlib import Path

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_committed_files import load
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

OLD, YOUNG = 7200, 60
MADE = orders(range(6))


def left(shop: FilesShop, path: str, seconds: int) -> None:
    """Leave a file that was written so long ago."""
    shop.load(path, MADE[:1])
    moment = time.time() - seconds
    os.utime(Path(f"{shop.place.store.root}/{path}"), (moment, moment))


def named(shop: FilesShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return [
            incident
            for incident in incidents.of(journal, context.window)
            if incident.kind is IncidentKind.LEFT_OVER_FILES
        ]


def test_what_no_reader_takes_for_long_is_named_and_blocks_nothing(shop: FilesShop) -> None:
    """Files of attempts, and one that no manifest lists; not those that a writer may be at, and not markers."""
    shop.describe_files(more={"committed": "manifest"}, max_age="1h")
    shop.send(MADE)
    load(shop, "manifest", "job-1", MADE)
    for path in ("_temporary/0/a.parquet", ".b.parquet.inprogress", "job-2/a.parquet", "c.parquet._COPYING_"):
        left(shop, path, OLD)
    left(shop, "_temporary/1/a.parquet", YOUNG)
    left(shop, "_temporary/0/.a.parquet.crc", OLD)

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED
    [incident] = named(shop, context)
    assert incident.kind is IncidentKind.LEFT_OVER_FILES
    paths = [".b.parquet.inprogress", "_temporary/0/a.parquet", "c.parquet._COPYING_", "job-2/a.parquet"]
    assert [file["path"] for file in incident.detail["files"]] == paths
    sizes = [file["size_bytes"] for file in incident.detail["files"]]
    assert (incident.detail["number"], incident.detail["size_bytes"]) == (4, sum(sizes))


def test_nothing_is_named_where_nothing_is_left(shop: FilesShop) -> None:
    shop.describe_files(max_age="1h")
    shop.send(MADE)
    shop.load("a.parquet", MADE)
    left(shop, "_temporary/1/a.parquet", YOUNG)
    context, closed = shop.whole_way()
    assert (closed.state, named(shop, context)) == (WindowState.CERTIFIED, [])


@pytest.mark.parametrize("place", ["hdfs", "s3"], indirect=True)
def test_what_no_reader_takes_is_named_on_servers_by_their_own_times(shop: FilesShop) -> None:
    """The time of an object cannot be set: the age is short, and waited for."""
    shop.describe_files(more={"committed": "manifest"}, max_age="2s")
    shop.send(MADE)
    load(shop, "manifest", "job-1", MADE)
    paths = [".b.parquet.inprogress", "_temporary/0/a.parquet", "c.parquet._COPYING_", "job-2/a.parquet"]
    for path in paths:
        shop.load(path, MADE[:1])
    time.sleep(2.5)

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED
    [incident] = named(shop, context)
    assert [file["path"] for file in incident.detail["files"]] == paths
    assert incident.detail["size_bytes"] == sum(len(shop.place.content(path)) for path in paths)
    for path in paths:
        shop.place.store.remove(path)
    assert named(shop, shop.judged()) == []
