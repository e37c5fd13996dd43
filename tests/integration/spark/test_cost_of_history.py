"""Test that a window costs the same however many windows there were: what it asks the journal, and what that reads."""

from datetime import timedelta
from math import ceil

import pytest

from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from tests.integration.spark.conftest import NewShop
from tests.world.long_history import Questions, questions, rows_read, simulate_windows
from tests.world.orders import DAY, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

FEW, SOME, MANY = 3, 60, 300
A_LIFE = 10_000
READ_MOST = 500
"""Rows that the server reads for one statement of a window: of a small pipeline, some tens."""
COUNTED = "key_index.count_windows"
"""The one statement that reads an index entry for each window ever: it returns their number."""


def trade(shop: ReconciledShop, day: int) -> None:
    shop.trade(orders(range(10 * day, 10 * day + 5), day))


def a_window_after(
    shop: ReconciledShop, windows: int, monkeypatch: pytest.MonkeyPatch, *others: str, step: timedelta = DAY
) -> Questions:
    """Judge and certify a window after so many, and return what it asked the journal."""
    for day in range(2):
        trade(shop, day)
        assert shop.whole_way(day)[1].state is WindowState.CERTIFIED
    simulate_windows(shop.journal, shop.pipeline.name, like=2, last=windows, others=others, step=step)
    day = 2 + ceil((windows - 2) * (step / DAY))
    trade(shop, day)
    with questions(monkeypatch) as asked:
        context, closed = shop.whole_way(day)
    assert (context.window.number, closed.state) == (windows + 1, WindowState.CERTIFIED)
    assert shop.counts(context, STORE_HOP).source_keys == 5
    return asked


@pytest.mark.extended
def test_a_window_asks_the_same_after_three_windows_and_after_three_hundred(
    new_shop: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, some, many = (a_window_after(new_shop(), windows, monkeypatch).counts for windows in (FEW, SOME, MANY))

    # The same statements as often, and never more rows than a window of the first months reads.
    for cost in (some, many):
        assert {name: times for name, (times, _) in cost.items()} == {name: times for name, (times, _) in few.items()}
    assert {name: (some[name], cost) for name, cost in many.items() if cost[1] > some[name][1]} == {}


@pytest.mark.extended
def test_the_server_reads_a_bounded_number_of_rows_for_each_question_of_a_window(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long: a journal of many windows is made first."""
    asked = a_window_after(shop, A_LIFE, monkeypatch, "second", "third", step=DAY / 20).asked

    read = dict[str, int]()
    with connect(shop.journal) as session:
        for statement in asked:
            if "." in statement.name and not statement.writes:
                read[statement.name] = max(read.get(statement.name, 0), rows_read(session, statement.text))
    assert {name: rows for name, rows in read.items() if rows > READ_MOST} == {COUNTED: A_LIFE + 1}
