"""Test that a window which is judged again reads only what is not shown to be unchanged, and nothing else is judged by
it."""

from typing import Any

import pytest

from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def reused(shop: ReconciledShop, context: WindowContext) -> dict[str, int]:
    """Return by point which revision's files a window names."""
    return {
        point: manifest["reused"]["revision"]
        for point, manifest in shop.manifests(context).items()
        if "reused" in manifest
    }


def why_read(shop: ReconciledShop, context: WindowContext) -> dict[str, str]:
    return {
        point: manifest["not_reused"]
        for point, manifest in shop.manifests(context).items()
        if "not_reused" in manifest
    }


def content(shop: ReconciledShop, context: WindowContext) -> dict[str, Any]:
    """Return what certificates are made of, by point: the hashes of the files and the account of the offsets."""
    return {
        point: [manifest["sha256"], manifest["rows"], manifest.get("accounting"), manifest.get("rows_counted")]
        for point, manifest in shop.manifests(context).items()
    }


def test_nothing_of_an_unchanged_window_is_read_again(shop: ReconciledShop) -> None:
    made = orders(range(40))
    shop.trade(made, unloaded=made[3:4])
    first = shop.judge_and_ask_the_gate()
    second = shop.judge_and_ask_the_gate()
    third = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == {}
    assert reused(shop, second) == reused(shop, third) == {"outbox": 1, "orders": 1, "warehouse": 1}
    assert content(shop, first) == content(shop, second) == content(shop, third)
    assert shop.found(second, "orders→warehouse") == shop.found(first, "orders→warehouse")
    assert first.storage.files_below(f"{second.window.prefix}/orders") == []
