"""Test datasets whose files count by a marker or by a manifest: what counts, and what a repair adds to them."""

import json

import pytest

from makewhole.datasets.files.listing import listing_now
from makewhole.datasets.files.write.chunk_rows import NO_FOLDER
from makewhole.datasets.files.write.commit_files import MARKED
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.places.dataset_place import MANIFESTS
from tests.integration.files.files_shop import FilesShop
from tests.integration.files.test_files_repair import ALL
from tests.integration.files.test_files_windows import MADE
from tests.world.combinations import with_every_change
from tests.world.files_lake import FilesPlace
from tests.world.orders import Order
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def commit(place: FilesPlace, committed: str, folder: str, names: list[str]) -> None:
    """Commit files of a folder as their job does."""
    name, content = ("_SUCCESS", b"") if committed == "_SUCCESS" else ("_manifest.json", json.dumps(names).encode())
    place.store.replace(f"{folder}/{name}", content)


def load(shop: FilesShop, committed: str, folder: str, orders: list[Order]) -> None:
    """Write a file of rows, and commit it."""
    shop.load(f"{folder}/a.parquet", orders)
    commit(shop.place, committed, folder, ["a.parquet"])


def counting(place: FilesPlace) -> list[str]:
    """Return the files that manifests name."""
    return [file.path for file in listing_now(place.store, MANIFESTS).files]


@pytest.mark.parametrize(
    ("place", "committed"),
    [("folder", "_SUCCESS"), ("folder", "manifest"), ("hdfs", "_SUCCESS"), ("s3", "manifest")],
    indirect=["place"],
)
def test_missing_rows_come_in_a_file_with_its_own_commit_and_go_again(shop: FilesShop, committed: str) -> None:
    """O4 is there twice: neither of its files is written again, since their own job's commit would not cover that."""
    shop.describe_files(compensation=ALL, more={"committed": committed})
    shop.send(MADE)
    load(shop, committed, "job-1", [*MADE[:2], *MADE[4:]])
    load(shop, committed, "job-2", [MADE[4]])
    context = shop.judge_and_ask_the_gate()
    missing = ("missing", "lost_after_topic")
    twice = {"O4": ("duplicate", "written_before_committed")}
    assert shop.found(context, STORE_HOP) == {"O2": missing, "O3": missing, **twice}
    before = shop.place.rows()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)

    assert shop.refused(plan) == {"O4": MARKED}
    assert sorted(row["id"] for row in shop.place.rows()) == sorted(["O4", *(order["id"] for order in MADE)])
    assert shop.found(shop.judged(), STORE_HOP) == twice
    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert shop.refused(undo) == {}
    assert shop.place.rows() == before
    assert [name for name in shop.place.names() if name.startswith(("makewhole-", "_manifest-makewhole"))] == []


def test_no_marker_of_its_own_can_be_where_folders_are_columns(shop: FilesShop) -> None:
    shop.describe_files(compensation=ALL, more={"committed": "_SUCCESS"}, hop={"leave": "[job]"})
    shop.send(MADE)
    load(shop, "_SUCCESS", "job=1", MADE[1:])
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {"O0": NO_FOLDER}


@pytest.mark.parametrize("place", with_every_change(["folder", "s3", "hdfs"], first=2), indirect=True)
def test_files_count_that_a_manifest_names_below_its_folder(place: FilesPlace) -> None:
    for name in ("a.parquet", "d/b.parquet", "d/c.parquet", "d/_e.parquet", "_tmp/f.parquet"):
        place.add(name, [])
    place.store.publish("_manifest-1.json", json.dumps(["a.parquet", "d/b.parquet", "gone.parquet"]).encode())
    place.store.publish("d/_manifest.json", json.dumps(["./b.parquet", "_e.parquet"]).encode())
    place.store.publish("_tmp/_manifest.json", json.dumps(["f.parquet"]).encode())
    listing = listing_now(place.store, MANIFESTS)
    assert counting(place) == ["a.parquet", "d/_e.parquet", "d/b.parquet"]
    assert [file.path for file in listing.uncommitted] == ["d/c.parquet"]


@pytest.mark.parametrize("content", [b"", b'["a.parq', b"{}", b'"a.parquet"'], ids=["empty", "cut off", "map", "text"])
def test_a_manifest_that_is_no_list_is_named_and_nothing_is_concluded(place: FilesPlace, content: bytes) -> None:
    place.add("a.parquet", [])
    place.store.publish("_manifest.json", content)
    with pytest.raises(TransientError) as raised:
        counting(place)
    assert str(raised.value) == (
        f"{place.store.root}/_manifest.json is no list of files: what it commits is not known. Its writer has to put "
        "it in place as a whole"
    )


@pytest.mark.parametrize("name", ["../a.parquet", "/a.parquet", "s3://lake/a.parquet", "", 7, None])
def test_a_manifest_that_names_no_file_below_its_folder_is_refused(place: FilesPlace, name: object) -> None:
    place.store.publish("d/_manifest.json", json.dumps(["a.parquet", name]).encode())
    with pytest.raises(RefusedError) as raised:
        counting(place)
    assert str(raised.value) == (
        f"{place.store.root}/d/_manifest.json names {json.dumps(name)}, which is no path of a file below its folder"
    )
