"""Test that rows which add the lines of orders up are held to them over some days, whatever is lost, repeated or odd.

make histories HISTORIES_ARGS="tests/histories/test_shapes_of_sums.py --histories 1000 --seed 1"
"""

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest

from tests.histories.shapes.sums import DrawnLine, DrawnSums, RecordKind, draw_sums, in_partitions
from tests.world.combinations import with_every_change
from tests.world.environment import set_connection
from tests.world.order_lines import OrderLines, moment
from tests.world.rows_of_totals import RowsOfTotals, TotalsInFiles, TotalsInIceberg, TotalsInTable
from tests.world.shop import STORE_HOP
from tests.world.topics import left_open, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.histories, pytest.mark.timeout(180)]

NewShop = Callable[[int], AbstractContextManager[ReconciledShop]]


@pytest.mark.parametrize("kind", with_every_change(["table", "files", "iceberg"], first=2))
def test_random_sums_are_right_or_wrong_as_their_records_say(
    seed: int, kind: str, shops: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{kind} {seed}"
    drawn = draw_sums(name)
    with shops(Random(name).randint(1, 3)) as shop:
        folder = shop.file.parent.parent / "lake"
        folder.mkdir()
        store = _store(kind, shop, folder)
        set_connection(monkeypatch, "lake", store.described)
        OrderLines(shop=shop, store=store.settings).describe(where="\"region = 'EU'\"")
        _send(shop, drawn)
        store.write(drawn.rows)
        for day in range(drawn.days):
            context = shop.judged(day)
            judged = shop.found(context, STORE_HOP), shop.counts(context, STORE_HOP).matched
            assert judged == drawn.right(day), f"day {day}"


def _store(kind: str, shop: ReconciledShop, folder: Path) -> RowsOfTotals:
    if kind == "table":
        return TotalsInTable(dsn=shop.dsn)
    return TotalsInIceberg(folder=folder) if kind == "iceberg" else TotalsInFiles(folder=folder)


def _send(shop: ReconciledShop, drawn: DrawnSums) -> None:
    """Send the records of each day, those of aborted transactions behind the others."""
    for lines in drawn.records.values():
        aborted = [line for line in lines if line.kind is RecordKind.ABORTED]
        _produce(shop, [line for line in lines if line not in aborted], is_aborted=False)
        if aborted:
            _produce(shop, aborted, is_aborted=True)
            assert not left_open(shop.bootstrap, shop.topic)


def _produce(shop: ReconciledShop, lines: Iterable[DrawnLine], *, is_aborted: bool) -> None:
    client = producer(shop.bootstrap, **({"transactional.id": shop.topic} if is_aborted else {}))
    if is_aborted:
        client.init_transactions(30)
        client.begin_transaction()
    for partition, line in in_partitions([*lines], shop.partitions):
        value = json.dumps(line.value()).encode()
        client.produce(shop.topic, value, b"k", partition, timestamp=moment(line.day))
    assert client.flush(30) == 0
    if is_aborted:
        client.abort_transaction(30)
