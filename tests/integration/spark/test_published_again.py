"""Publish windows again, out of order, beside another run, and into a topic that is not the one of before."""

from typing import Any
from unittest import mock

import pytest

from makewhole.journal import windows
from makewhole.model.errors import LeaseLostError
from tests.integration.spark.test_published import certified, keys, publish, publishing, sent
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_run_that_another_one_overtook_removes_no_file_that_was_decided(shop: ReconciledShop) -> None:
    folder = publishing(shop, has_ledger=False)
    made = orders(range(3))
    shop.send(made)
    shop.write("warehouse", made)
    context = certified(shop)
    load, overtaken = windows.load, list[Any]()

    def load_when_overtaken(*given: Any) -> Any:
        if not overtaken:
            overtaken.append(given)
            publish(shop, context)
        return load(*given)

    with mock.patch.object(windows, "load", load_when_overtaken), pytest.raises(LeaseLostError):
        publish(shop, context)
    assert keys(folder) == [order["id"] for order in made]


def test_run_that_another_one_overtook_does_not_take_its_marker_for_that_of_another_makewhole(
    shop: ReconciledShop,
) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    for day in range(2):
        made = orders(range(day * 10, day * 10 + 2), day=day)
        shop.send(made)
        shop.write("warehouse", made)
        context = certified(shop, day)
        with mock.patch("makewhole_spark.publish.publish_window._send"):
            publish(shop, context)
    overtaken = list[Any]()

    def due_when_overtaken(*_: Any) -> list[tuple[int, int]]:
        if not overtaken:
            overtaken.append(context)
            publish(shop, context)
        return []

    with (
        mock.patch("makewhole_spark.publish.publish_window._due", due_when_overtaken),
        pytest.raises(LeaseLostError),
    ):
        publish(shop, context)
    assert len(sent(shop, name)) == 4
