"""Publish windows to HDFS and to S3: visible as a whole or not at all, whenever the process ends."""

import io
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest

from makewhole.journal import publications
from makewhole.journal.database import connect
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.publishing import place as publication_place
from makewhole.window.context import WindowContext
from makewhole_spark.publish.publish_window import publish_windows
from tests.integration.files.files_shop import FilesShop
from tests.integration.spark.test_published import choosing
from tests.integration.spark.test_published_killed import KilledError, killed
from tests.world.files_lake import FilesPlace
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

EVERY = pytest.mark.parametrize("place", ["folder", "hdfs", "s3"], indirect=True)
MADE = orders(range(6))
_WRITERS = 12
_STEPS = (
    "makewhole.publishing.place.claim",
    "makewhole.journal.publications.decide",
    "makewhole.lake.storage.give_name",
    "makewhole.publishing.place.show",
    "makewhole.journal.publications.note_visible",
)


def root_of(shop: FilesShop) -> str:
    """Return where the shop's topic is published: beside its warehouse, through the connection of that."""
    at, fields = shop.place.path, shop.place.fields
    if fields["conn_type"] == "fs":
        return f"{fields['extra']['path']}{at}-once"
    if fields["conn_type"] == "hdfs":
        return f"hdfs://lake@{fields['host']}:{fields['port']}{at}-once"
    return f"s3://lake@{at.removeprefix('s3://')}-once"


def publishing(shop: FilesShop) -> WindowContext:
    """Send orders into a shop that publishes its topic, and certify their window."""
    shop.format = {"publish": f"{{path: '{root_of(shop)}'}}"}
    shop.describe_files()
    shop.send(MADE)
    shop.load("a.parquet", MADE)
    return certified(shop)


def certified(shop: FilesShop) -> WindowContext:
    """Take the window, or its next revision, to its certificate."""
    context, closed = shop.whole_way()
    assert closed.state.value == "certified", closed.reason
    return context


def publish(shop: FilesShop, context: WindowContext) -> None:
    """Publish what is due."""
    with connect(shop.journal) as journal:
        publish_windows(shop.carrier, journal, context)


def visible(shop: FilesShop) -> list[Mapping[str, Any]]:
    """Return the manifests that a consumer finds."""
    folder = Storage(root=root_of(shop))
    names = [name for name in folder.names("manifests") if name.endswith(".json")]
    return [json.loads(folder.read_bytes(f"manifests/{name}")) for name in names]


def standing(shop: FilesShop, manifest: Mapping[str, Any]) -> list[str]:
    """Return the keys that stand by a manifest; each of its files has to be what it says."""
    folder, frames = Storage(root=root_of(shop)), []
    for file in manifest["files"]:
        assert folder.sha256(file["path"]) == file["sha256"]
        frames.append(pl.read_parquet(io.BytesIO(folder.read_bytes(file["path"]))))
    newest = pl.concat(frames).sort("revision").unique("offset", keep="last", maintain_order=True)
    return newest.filter(pl.col("change") == "publish").sort("offset")["key"].to_list()


@EVERY
def test_window_is_visible_as_a_whole_or_not_at_all_wherever_the_process_ends(shop: FilesShop) -> None:
    context = publishing(shop)
    for step in _STEPS:
        for is_after in (False, True):
            try:
                with killed(step, is_after=is_after):
                    publish(shop, context)
            except BaseException as failure:
                if not isinstance(failure, (KilledError, pytest.fail.Exception)):
                    raise
            for manifest in visible(shop):
                assert standing(shop, manifest) == [f"O{number}" for number in range(6)], step
    publish(shop, context)
    [manifest] = visible(shop)
    assert standing(shop, manifest) == [f"O{number}" for number in range(6)]
    written = [file.path for file in Storage(root=root_of(shop)).files_below("data")]
    assert written == [file["path"] for file in manifest["files"]]


@EVERY
def test_revision_leaves_what_a_reader_in_the_middle_has(shop: FilesShop) -> None:
    context = publishing(shop)
    publish(shop, context)
    [first] = visible(shop)
    with choosing(lambda survivors: survivors.filter(pl.col("key") != "O2")):
        publish(shop, certified(shop))
    before, second = visible(shop)
    assert before == first
    assert (second["revision"], second["published"], second["withdrawn"], second["records"]) == (2, 0, 1, 5)
    assert standing(shop, first) == [f"O{number}" for number in range(6)]
    assert standing(shop, second) == ["O0", "O1", "O3", "O4", "O5"]


@EVERY
def test_folder_that_another_publication_claims_meanwhile_is_left_before_anything_is_decided(shop: FilesShop) -> None:
    context = publishing(shop)
    real = publication_place.sweep

    def claimed_by_another(folder: Storage, number: int, revision: int) -> int:
        folder.write_bytes("owner.json", b'{"publication": "another"}')
        return real(folder, number, revision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publication_place, "sweep", claimed_by_another)
        with pytest.raises(RefusedError, match=r"owner\.json says that something else is published there"):
            publish(shop, context)
    assert visible(shop) == []
    with connect(shop.journal) as journal:
        [publication] = publications.of_pipeline(journal, "shop")
        assert publications.published(journal, publication) == []


@pytest.mark.parametrize("place", ["folder", "hdfs"], indirect=True)
def test_of_many_that_write_one_file_once_one_succeeds_and_the_others_learn_it(
    shop: FilesShop, place: FilesPlace
) -> None:
    folder = Storage(root=root_of(shop))
    contents = [f"{number}".encode() * 1000 for number in range(_WRITERS)]

    def write(content: bytes) -> bool:
        try:
            folder.write_once("manifests/one.json", content)
        except CorruptionError as refused:
            assert "is there with another content; it was left as it is" in str(refused)
            return False
        return True

    with ThreadPoolExecutor(_WRITERS) as pool:
        done = list(pool.map(write, contents))
    assert done.count(True) == 1
    assert folder.read_bytes("manifests/one.json") == contents[done.index(True)]
    assert folder.names("manifests") == ["one.json"]
