"""Report published windows to the asset: each in one event, also those that a run publishes beside its own."""

from typing import Any

import pytest

from makewhole.journal.database import connect
from makewhole.publishing import published
from makewhole.publishing.published import report_published
from makewhole.window.context import WindowContext
from tests.integration.spark.test_published import certified, publish, publishing
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

DAYS = [orders(range(day * 10, day * 10 + 2), day=day) for day in range(4)]


def report(shop: ReconciledShop, context: WindowContext, run: str) -> dict[str, Any]:
    """Return what the event of a run says of the shop's topic; empty: it has none."""
    with connect(shop.journal) as journal:
        return report_published(journal, context.pipeline, context.window, run).get("orders", {})


def windows_of(reported: dict[str, Any]) -> list[tuple[int, int]]:
    return [(window["window"], window["revision"]) for window in reported.get("published", ())]


def test_run_whose_own_window_waits_reports_the_older_ones_that_it_publishes(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four windows: the first is published by the run of the third, which waits for the second."""
    name = shop.add_topic()
    folder = publishing(shop, into=name, has_ledger=False)
    for day in DAYS:
        shop.send(day)
    shop.write("warehouse", [*DAYS[0], DAYS[1][0], *DAYS[2], *DAYS[3]])
    first = certified(shop)
    second, closed = shop.whole_way(1)
    assert closed.state.value == "gaps"
    assert report(shop, second, "dag/second") == {}

    third = certified(shop, day=2)
    publish(shop, third)
    reported = report(shop, third, "dag/third")
    manifest = str(folder / "manifests/window=00000001.revision=0001.json")
    entry = {"window": 1, "revision": 1, "manifest": manifest, "records": 2}
    assert reported == {
        "manifest": None,
        "topic": shop_topic(shop),
        "records": None,
        "complete_through": 1,
        "revoked": [],
        "published": [entry],
        "left_out": 0,
    }
    assert report(shop, third, "dag/third") == reported  # its task is tried again
    assert report(shop, third, "dag/other") == {}
    assert windows_of(report(shop, first, "dag/again")) == [(1, 1)]  # a run always reports its own

    shop.write("warehouse", [DAYS[1][1]])
    second = certified(shop, day=1)
    publish(shop, second)
    fourth = certified(shop, day=3)  # the task of the run before ended without its event
    publish(shop, fourth)
    monkeypatch.setattr(published, "MOST_REPORTED", 2)
    reported = report(shop, fourth, "dag/fourth")
    assert (windows_of(reported), reported["left_out"], reported["complete_through"]) == ([(3, 1), (4, 1)], 1, 4)
    assert reported["manifest"] == reported["published"][1]["manifest"]


def test_window_that_a_topic_does_not_have_yet_is_reported_when_it_has(shop: ReconciledShop) -> None:
    name = shop.add_topic()
    publishing(shop, into=name, has_ledger=False)
    shop.send(DAYS[0])
    shop.write("warehouse", DAYS[0])
    context = certified(shop)
    publish(shop, context)
    shop.journal_sql("update makewhole.publication set sent_chunks = 0")
    assert report(shop, context, "dag/first") == {}
    shop.journal_sql("update makewhole.publication set sent_chunks = 1")
    assert windows_of(report(shop, context, "dag/second")) == [(1, 1)]


def shop_topic(shop: ReconciledShop) -> str:
    [(place,)] = shop.journal_sql("select topic from makewhole.publication")
    return str(place)
