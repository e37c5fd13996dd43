"""Publish the records of windows once for everyone: what stands in the folder, and what does not."""

import json
from pathlib import Path

import polars as pl
import pytest

from makewhole.journal.database import connect
from makewhole.window.context import WindowContext
from makewhole_spark.publish.publish_window import publish_windows
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def publishing(shop: ReconciledShop, **settings: object) -> Path:
    """Describe the shop with a folder in which its topic is published; return the folder."""
    folder = shop.folder / "once"
    shop.format = {"publish": f"{{path: {folder}}}"}
    shop.describe(**settings)  # type: ignore[arg-type]
    return folder


def publish(shop: ReconciledShop, context: WindowContext) -> list[dict[str, object]]:
    """Publish what is due; return the manifests that are new."""
    with connect(shop.journal) as journal:
        done = publish_windows(shop.carrier, journal, context)
    return [dict(one.manifest) for point in done for one in point.windows]


def read(folder: Path) -> pl.DataFrame:
    """Read what stands in a folder as the documentation has it."""
    newest = {}
    for path in sorted((folder / "manifests").glob("*.json")):
        manifest = json.loads(path.read_text())
        newest[manifest["window"]] = manifest
    files = [folder / file["path"] for manifest in newest.values() for file in manifest["files"]]
    rows = pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame({"key": []})
    if not files:
        return rows
    last = rows.sort("revision").unique(["window", "partition", "offset"], keep="last")
    return last.filter(pl.col("change") == "publish").sort("window", "partition", "offset")


def test_window_is_published_with_each_key_once(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False, compensation={"limits": "{share: 1.0}"}, tolerance={"duplicate": "9"})
    made = orders(range(5))
    shop.send([*made, made[1], made[1]])
    shop.write("warehouse", made)
    context, closed = shop.whole_way()
    assert closed.state.value == "certified", closed.reason
    [manifest] = publish(shop, context)
    rows = read(folder)
    assert rows["key"].to_list() == [order["id"] for order in made]
    assert [json.loads(value) for value in rows["value"]] == [json.loads(json.dumps(order)) for order in made]
    assert (manifest["records"], manifest["sent_again"]) == (5, {"records": 2, "keys_of_other_windows": 0})
    assert publish(shop, context) == []
