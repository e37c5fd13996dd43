"""Test an erasure beside windows and plans that begin while it is at work."""

from collections.abc import Callable
from typing import Any

import pytest

from makewhole.compensation.undo import plan_undo as undoing
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.erasure.planned_actions import erase_at_targets
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError, TransientError
from makewhole.orchestration.housekeeping import erase_what_came_back
from tests.integration.spark.test_erase import erased, places_of, request_of, verified
from tests.integration.spark.test_keep import UPSERT, repaired
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def beside(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something once, when an erasure has found what it erases and puts the first file in its place."""
    put, left = Storage.put_in_place, iter([act])

    def puts(storage: Storage, written: str, path: str) -> None:
        next(left, lambda: None)()
        put(storage, written, path)

    monkeypatch.setattr(Storage, "put_in_place", puts)


def is_gone(shop: ReconciledShop, key: str) -> bool:
    request = request_of(shop, key).erased
    return places_of(shop, request.text, request.hash) == []


def test_an_erasure_does_not_end_beside_a_window_that_began_meanwhile(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    repaired(shop)
    shop.trade(orders(range(900_101, 900_103), 1))
    beside(monkeypatch, lambda: shop.judge_and_ask_the_gate(1))
    with pytest.raises(TransientError, match="is not erased to its end, as meanwhile window 2 is open"):
        erased(shop, "O900101")
    assert shop.journal_sql("select count(*) from makewhole.erasure where erased_at is null") == [(1,)]
    assert any("did not come to its end" in problem for problem in verified(shop))
    with pytest.raises(RefusedError, match="no key of shop can be erased now: window 2 is open"):
        erased(shop, "O900101")
    shop.whole_way(1)
    erased(shop, "O900101")
    assert is_gone(shop, "O900101")
    assert verified(shop) == []


def test_a_window_that_began_and_ended_meanwhile_is_searched_by_housekeeping(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(900_101, 900_106)))
    shop.whole_way(0)
    shop.trade(orders(range(900_101, 900_103), 1))
    beside(monkeypatch, lambda: shop.whole_way(1))
    erased(shop, "O900101")
    assert not is_gone(shop, "O900101")
    erase_what_came_back("shop")
    assert is_gone(shop, "O900101")
    assert verified(shop) == []


def test_an_undo_that_was_planned_meanwhile_keeps_an_erasure_from_its_end(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the files; should the erasure's session have lost them, its end sees the plan."""
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    context, plan = repaired(shop)
    monkeypatch.setattr(undoing, "hold_files", lambda *_: None)

    def planned_first(*values: Any) -> Any:
        plan_undo(context, plan.id, reverses=False)
        return erase_at_targets(*values)

    monkeypatch.setattr("makewhole.erasure.erase_key.erase_at_targets", planned_first)
    with pytest.raises(TransientError, match=r"as meanwhile plan [^ ]+ is awaiting approval\. Let it end"):
        erased(shop, "O900101")
