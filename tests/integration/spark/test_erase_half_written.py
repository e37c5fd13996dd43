"""Test what an erasure makes of files that attempts left half written, and that nothing writes beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.journal.database import JournalSession, connect
from makewhole.journal.retention import erasures
from makewhole.journal.retention.file_locks import require_files
from makewhole.kafka.log.segment import SIDECAR
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError, TransientError
from makewhole_spark.publish.publish_window import publish_windows
from tests.integration.spark.test_erase import erased, places_of, request_of, verified
from tests.integration.spark.test_keep import UPSERT, archived, repaired
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def half_written(shop: ReconciledShop, window: int) -> set[str]:
    """Leave what attempts at a window leave when they are killed; return the files that were not there before."""
    storage, folder = Storage.from_environment(), f"shop/window={window}/revision=1/orders"
    rows = next(file.path for file in storage.files_below(f"{folder}/keys") if file.path.endswith(".parquet"))
    records = next(path for path in archived(storage, window) if path.endswith(".log"))
    bucket = rows.split("/")[-2]
    cut = storage.read_bytes(rows)[:-20]
    left = {
        f"{folder}/keys/{bucket}/part-0123456789abcdef.parquet": cut,
        f"shop/index/orders/window={window}/bucket=00of1/part-0123456789abcdef.parquet": cut,
        f"shop/index/orders/merged/{0:032}/bucket=00of1/part-0123456789abcdef.parquet": cut,
        f"{rows}.{1:016}.unfinished": storage.read_bytes(rows),
        f"{folder}/archive/partition=0/.{7:020}.{0:032}.tmp": storage.read_bytes(records),
        f"{folder}/archive/partition=0/{7:020}.log": storage.read_bytes(records),
    }
    for path, content in left.items():
        storage.write_bytes(path, content)
    return set(left)


def test_what_killed_attempts_left_half_written_goes_and_what_is_at_work_stays(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    storage = Storage.from_environment()
    dead, at_work = half_written(shop, 1), set[str]()
    planned = CliRunner().invoke(app, ["erase", "shop", "O900101", "--dry-run", "--json"])
    assert (planned.exit_code, set(json.loads(planned.output)["half_written"])) == (0, dead)
    begin = erasures.begin

    def begins(*values: Any) -> Any:
        at_work.update(path.replace("window=1", "window=2") for path in dead if "window=1" in path)
        for path in at_work:
            storage.write_bytes(path, b"half")
        return begin(*values)

    with monkeypatch.context() as patched:
        patched.setattr(erasures, "begin", begins)
        assert set(erased(shop, "O900101").holdings.half_written) == dead

    there = {file.path for file in storage.files_below("shop")}
    assert (there & dead, at_work - there, len(at_work)) == (set(), set(), 5)
    for path in at_work:
        storage.remove(path)
    key = request_of(shop, "O900101").erased
    assert places_of(shop, key.text, key.hash) == []
    assert verified(shop) == []


def test_a_named_file_that_cannot_be_read_refuses_an_erasure_by_its_name(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    storage = Storage.from_environment()
    records = next(path for path in archived(storage, 1) if path.endswith(".log"))
    beside = f"{records.removesuffix('.log')}{SIDECAR}"
    was = storage.read_bytes(beside)
    storage.remove(beside)
    with pytest.raises(CorruptionError, match=f"{records} has lost {Path(beside).name} beside it; restore that file"):
        erased(shop, "O900101")
    storage.write_bytes(beside, was)
    rows = next(file.path for file in storage.files_below("shop/window=1/revision=1/orders/keys"))
    whole = storage.read_bytes(rows)
    storage.write_bytes(rows, whole[:-20])
    with pytest.raises(CorruptionError, match=f"{rows} is no whole Parquet file; restore it, or run the window again"):
        erased(shop, "O900101")
    storage.write_bytes(rows, whole)
    erased(shop, "O900101")
    assert verified(shop) == []


def test_what_a_killed_erasure_wrote_is_known_as_unfinished(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)

    def dies(_: Storage, written: str, path: str) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "put_in_place", dies)
        with pytest.raises(KeyboardInterrupt):
            erased(shop, "O900101")
    storage = Storage.from_environment()
    [left] = [file.path for file in storage.files_below("shop") if file.path.endswith(".unfinished")]
    assert "/archive/" in left
    erased(shop, "O900102")
    assert storage.read_if_exists(left) is None


def test_nothing_is_published_or_undone_while_a_key_is_being_erased(shop: ReconciledShop) -> None:
    shop.format = {"publish": f"{{path: {shop.folder / 'once'}}}"}
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    context, plan = repaired(shop)
    with JournalSession(shop.journal) as session:
        with session.transaction() as journal:
            require_files(journal, "shop")
        with connect(shop.journal) as other, pytest.raises(TransientError, match="a key of shop is being erased"):
            publish_windows(shop.carrier, other, context)
        with pytest.raises(TransientError, match="a key of shop is being erased"):
            plan_undo(context, plan.id, reverses=False)
    with connect(shop.journal) as other:
        assert [len(point.windows) for point in publish_windows(shop.carrier, other, context)] == [1]
    assert plan_undo(context, plan.id, reverses=False).plan is not None
