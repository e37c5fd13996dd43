"""Test that a window costs the same however many windows there were: what it asks the journal, and what that reads."""

import pytest

from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from tests.world.long_history import Questions, questions, rows_read, simulate_windows
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

FEW, MANY = 3, 300
A_LIFE = 10_000
READ_MOST = 500
"""Rows that the server reads for one statement of a window: of a small pipeline, some tens."""


def trade(shop: ReconciledShop, day: int) -> None:
    shop.trade(orders(range(10 * day, 10 * day + 5), day))


def a_window_after(shop: ReconciledShop, days: int, monkeypatch: pytest.MonkeyPatch, *others: str) -> Questions:
    """Judge and certify a window after so many days, and return what it asked the journal."""
    for day in range(2):
        trade(shop, day)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    simulate_windows(shop.journal, shop.pipeline.name, like=2, last=days, others=others)
    trade(shop, days)
    with questions(monkeypatch) as asked:
        context, closed = shop.whole_way(days)
    assert (context.window.number, closed.state) == (days + 1, WindowState.CERTIFIED)
    assert shop.counts(context, "orders→warehouse").source_keys == 5
    return asked


COSTS: dict[int, dict[str, tuple[int, int]]] = {}


@pytest.mark.parametrize("days", [FEW, MANY])
def test_a_window_asks_the_same_after_three_windows_and_after_three_hundred(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    COSTS[days] = a_window_after(shop, days, monkeypatch).counts

    assert COSTS[days] == COSTS.get(FEW)


def test_the_server_reads_a_bounded_number_of_rows_for_each_question_of_a_window(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = a_window_after(shop, A_LIFE, monkeypatch, "second", "third").asked

    read = {}
    with connect(shop.journal) as session:
        for one in asked:
            if "." in one.name and not one.writes:
                read[one.name] = max(read.get(one.name, 0), rows_read(session, one.text))
    assert {name: rows for name, rows in read.items() if rows > READ_MOST} == {}
