"""Test that a revision which two processes compare at once is committed once: Airflow can run a task twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole_spark.reconcile.judge_window import reconcile
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def test_what_is_committed_first_stands_and_is_what_both_report(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    context = shop.open()
    shop.snapshot(context)

    def compare(_: int) -> dict[str, HopResult]:
        with connect(shop.journal) as journal:
            return reconcile(shop.carrier, journal, context)

    with ThreadPoolExecutor(2) as pool:
        first, other = pool.map(compare, range(2))

    with connect(shop.journal) as journal:
        assert hop_results.results(journal, context.window) == first
    assert {hop: result.files for hop, result in other.items()} == {hop: result.files for hop, result in first.items()}
