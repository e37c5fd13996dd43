"""Test what an erasure, and housekeeping after it, leave nowhere: filters, unreadable records, unknown receipts."""

from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import UNDECODABLE
from makewhole.compute.keys import with_hash
from makewhole.key_index.files import keys_by_filter
from makewhole.lake.storage import Storage
from makewhole.orchestration.housekeeping import erase_what_came_back
from tests.integration.spark.test_erase import erased, places_of, request_of, verified
from tests.integration.spark.test_keep import UPSERT, age, keep, repaired
from tests.integration.spark.test_keep_of_plans import left
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def known_by_filter(path: str, *names: str) -> list[str] | None:
    """Return those of some keys that the filter of a file knows; None: there is none."""
    keys = with_hash(pl.DataFrame({"key": names}, schema={"key": pl.String}))
    frame = keys_by_filter(Storage.from_environment(), path, keys.sort("key_hi", "key_lo"))
    return None if frame is None else sorted(frame["key"])


def test_a_filter_knows_no_key_whose_erasure_was_killed_beside_it(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    files = Storage.from_environment().files_below("shop/index/orders")
    [path] = [file.path for file in files if file.path.endswith(".parquet")]
    assert known_by_filter(path, "O900101", "O900102") == ["O900101", "O900102"]

    def dies(*of: Any) -> None:
        raise KeyboardInterrupt(of)

    with monkeypatch.context() as patched:
        patched.setattr("makewhole.erasure.erase_key.renew_filter", dies)
        while known_by_filter(path, "O900101") == ["O900101"] and len(erased_files(shop)) < 20:
            before = len(erased_files(shop))
            with pytest.raises(KeyboardInterrupt):
                erased(shop, "O900101")
            assert len(erased_files(shop)) > before
    assert known_by_filter(path, "O900101") in (None, [])
    erased(shop, "O900101")
    assert known_by_filter(path, "O900101", "O900102") == ["O900102"]
    assert verified(shop) == []


def erased_files(shop: ReconciledShop) -> list[Any]:
    return shop.journal_sql("select path from makewhole.erased_file")


def test_records_that_cannot_be_read_are_erased_again_by_their_known_key(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    assert erased(shop, "O900101").holdings.is_empty
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    rows = [("0:5", "no JSON", "O900101"), ("0:6", "no JSON", None), ("0:7", "no JSON", "O900102")]
    storage = Storage.from_environment()
    path = storage.write_parquet(
        "shop/window=2/revision=1/orders/undecodable", pl.DataFrame(rows, schema=UNDECODABLE, orient="row")
    )

    erase_what_came_back("shop")

    read = storage.read_parquet([path])
    assert read is not None
    assert read["business_key"].to_list() == [None, "O900102"]
    key = request_of(shop, "O900101").erased
    assert places_of(shop, key.text, key.hash) == []


def test_housekeeping_searches_a_window_once_it_has_read_all_and_not_each_night(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    erased(shop, "O900101")
    shop.trade(orders(range(900_101, 900_104), 1))
    context = shop.open(1)
    two_hours_ago(shop)
    searched = list[str]()
    below = Storage.files_below

    def noted(storage: Storage, folder: str) -> Any:
        searched.append(folder)
        return below(storage, folder)

    monkeypatch.setattr(Storage, "files_below", noted)
    erase_what_came_back("shop")  # it has read nothing yet
    assert searched == ["shop/window=2"]
    shop.judge(context).validate(context)
    shop.certify(context)
    erase_what_came_back("shop")
    key = request_of(shop, "O900101").erased
    assert places_of(shop, key.text, key.hash) == []
    searched.clear()
    erase_what_came_back("shop")
    two_hours_ago(shop)
    erase_what_came_back("shop")
    searched.clear()
    erase_what_came_back("shop")
    assert searched == []
    shop.trade(orders([900_105], 2))
    shop.whole_way(2)
    searched.clear()
    erase_what_came_back("shop")
    assert searched == ["shop/window=3"]


def two_hours_ago(shop: ReconciledShop) -> None:
    """Make all that was opened and erased until now be so two hours earlier."""
    shop.journal_sql("update makewhole.window set opened_at = opened_at - interval '2 hours'")
    shop.journal_sql(
        "update makewhole.erasure set asked_at = asked_at - interval '2 hours', "
        "searched_to = searched_to - interval '2 hours'"
    )


def test_an_archive_whose_snapshot_was_deleted_is_named_as_not_searched(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    storage, folder = Storage.from_environment(), "shop/window=1/revision=1/orders"
    assert erased(shop, "O900102").stays == ()
    for file in storage.files_below(f"{folder}/keys"):
        storage.remove(file.path)
    assert erased(shop, "O900101").stays == (
        f"{folder}/archive cannot be searched for the key, as the keys of its snapshot were removed: remove the "
        "archive, too",
    )
    for file in storage.files_below(f"{folder}/archive"):
        storage.remove(file.path)
    assert erased(shop, "O900101").stays == ()


def test_what_a_plan_with_unknown_receipts_left_at_its_targets_goes(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT, keep={"effects": "30d"})
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    _, plan = repaired(shop)
    shop.journal_sql("delete from makewhole.chunk")
    shop.journal_sql("update makewhole.plan set is_unknown = true, settled_at = ended_at")
    assert left(shop) == {plan.id: (2, 1)}

    assert erased(shop, "O900101").rows_at_targets == 1
    assert left(shop) == {plan.id: (1, 1)}
    age(shop)
    shop.journal_sql("update makewhole.plan set settled_at = ended_at")
    assert [(leftover.kind.value, leftover.amount.rows) for leftover in keep(shop)] == [("effects", 3)]
    assert left(shop) == {}
