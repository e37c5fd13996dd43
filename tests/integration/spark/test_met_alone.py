"""Test rows of a store that come before their record: the window of the record knows them, though they lie in the slice
of another window."""

import pytest

from makewhole.journal.database import connect
from makewhole.window.context import connections_of, window_context
from makewhole.window.opening.open import Request, open_interval
from makewhole_spark.reconcile.gather import met_alone
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, DAY, Order, at_day, orders
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

TWICE = ("duplicate", "written_before_committed")
UNMATCHED = ("unexpected", "not_in_source")


def with_late(shop: ReconciledShop, late: str) -> None:
    shop.file.write_text(shop.file.read_text().replace("settle:", f"late: {late}\nsettle:"))


# The row is in the window before its record


def test_a_row_that_comes_before_its_record_is_fine(shop: ReconciledShop, days: list[list[Order]]) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][0]), at_day(1.5, days[2][0])])
    windows = [shop.judged(day) for day in range(3)]

    assert [shop.found(window, STORE_HOP) for window in windows] == [{}, {}, {}]
    assert [shop.counts(window, STORE_HOP).matched for window in windows] == [5, 5, 5]
    assert [shop.counts(window, STORE_HOP).source_keys for window in windows] == [5, 5, 5]


@pytest.mark.parametrize("second", with_every_change([1.5, 1.0], first=1))
def test_another_row_in_the_window_of_the_record_is_a_duplicate(
    shop: ReconciledShop, days: list[list[Order]], second: float
) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][0]), at_day(second, days[1][0])])
    first, then = shop.judged(0), shop.judged(1)

    # The first window looks its row up: that of the day after is there, too.
    assert shop.found(first, STORE_HOP) == {"O100": TWICE}
    assert shop.found(then, STORE_HOP) == {"O100": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 4


def test_another_row_that_comes_after_the_first_was_met_is_a_duplicate(
    shop: ReconciledShop, days: list[list[Order]]
) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][0])])
    first = shop.judged(0)
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    then = shop.judged(1)

    assert shop.found(first, STORE_HOP) == {}
    assert shop.found(then, STORE_HOP) == {"O100": TWICE}
    assert shop.evidence(then, STORE_HOP, "O100")["target_copies"] == 2


@pytest.mark.parametrize("is_early", [True, False], ids=["the first before its record", "the first with its record"])
def test_another_row_two_windows_later_is_a_duplicate_there(
    shop: ReconciledShop, days: list[list[Order]], is_early: bool
) -> None:
    shop.write("warehouse", [at_day(0.5 if is_early else 1.5, days[1][0]), days[2][0]])
    shop.send(orders(range(300, 303), 3))
    shop.write("warehouse", orders(range(300, 303), 3))
    before = [shop.judged(day) for day in range(3)]
    shop.write("warehouse", [at_day(3.5, days[1][0])])

    last = shop.judged(3)

    assert [shop.found(window, STORE_HOP) for window in before] == [{}, {}, {}]
    assert shop.found(last, STORE_HOP) == {"O100": TWICE}
    assert shop.counts(last, STORE_HOP).matched == 3


@pytest.mark.parametrize("reach", ["late", "max_age"])
def test_a_row_from_some_windows_before_is_known_as_far_back_as_it_may_be(
    shop: ReconciledShop, days: list[list[Order]], reach: str
) -> None:
    """The window right before the record's has nothing of the key."""
    shop.describe(has_ledger=False, max_age="1s" if reach == "late" else "2d")
    with_late(shop, "2d" if reach == "late" else "0s")
    shop.write("warehouse", [days[1][0], at_day(0.5, days[2][0])])
    shop.judged(0)
    shop.judged(1)
    shop.write("warehouse", [at_day(2.5, days[2][0])])

    assert shop.found(shop.judged(2), STORE_HOP) == {"O200": TWICE}


@pytest.mark.parametrize("cause", ["in_flight", "not_yet_consumed"])
def test_a_row_that_is_there_with_a_later_time_is_not_pending(
    shop: ReconciledShop, days: list[list[Order]], cause: str
) -> None:
    """Though its absence would not count yet."""
    if cause == "not_yet_consumed":
        shop.describe(has_ledger=False, hop={"consumer_group": "loader"})
        shop.commit_group("loader", 0)
    else:
        shop.describe(has_ledger=False, settle="1h")
    shop.write("warehouse", [at_day(1.5, days[0][0])])
    shop.sql("delete from warehouse where id = 'O0' and at < '2025-03-02' or id = 'O3'")

    first = shop.judged(0)

    assert shop.found(first, STORE_HOP) == {"O3": ("pending", cause)}
    assert shop.counts(first, STORE_HOP).matched == 4


# The first windows


@pytest.mark.parametrize("start", ["TIME", "latest"])
def test_a_row_from_before_the_first_window_is_known_in_the_windows_that_it_may_belong_to(
    shop: ReconciledShop, days: list[list[Order]], start: str
) -> None:
    """No window has read it."""
    shop.describe(has_ledger=False, start="latest" if start == "latest" else BORN.isoformat())
    for day in range(2):
        shop.write("warehouse", [at_day(-0.01, days[day][1])])
    shop.write("warehouse", [days[1][0]])

    with connect(shop.journal) as journal:
        wanted = Request(id="given", start=BORN, end=BORN + DAY)
        opened = open_interval(journal, shop.pipeline, connections_of(shop.pipeline), wanted)
    first = window_context(opened.window, shop.pipeline)
    shop.judge(first)
    then = shop.judged(1)

    assert first.window.start == BORN
    assert shop.found(first, STORE_HOP) == {"O1": TWICE}
    assert shop.found(then, STORE_HOP) == {"O101": TWICE}
    assert [shop.counts(window, STORE_HOP).matched for window in (first, then)] == [4, 4]


def test_the_first_window_without_a_start_has_the_rows_of_all_times(
    shop: ReconciledShop, days: list[list[Order]]
) -> None:
    shop.write("warehouse", [at_day(-400, days[0][1]), at_day(-400, days[1][1]), days[1][0]])

    first, then = shop.judged(0), shop.judged(1)

    assert shop.found(first, STORE_HOP) == {"O1": TWICE, "O101": TWICE}
    assert shop.found(then, STORE_HOP) == {"O101": TWICE}


def test_rows_from_before_the_log_are_known_for_ever(shop: ReconciledShop) -> None:
    """Their records are gone, so that the key index does not know them."""
    shop.describe(has_ledger=False, start=None)
    old = orders(range(5))
    shop.send(old)
    shop.write("warehouse", old)
    shop.delete_records({0: 5})
    for number in (100, 2000, 2001):  # days 0, 8 and 9
        made = orders([number, number + 10], {100: 0, 2000: 8, 2001: 9}[number])
        shop.send(made)
        shop.write("warehouse", made)
    first, _ = shop.judged(0), shop.judged(8)
    assert shop.counts(first, STORE_HOP).before_baseline == 5
    again = at_day(9.5, old[2])
    shop.send([again])
    shop.write("warehouse", [again])

    last = shop.judged(9)

    assert shop.found(last, STORE_HOP) == {"O2": TWICE}
    assert shop.counts(last, STORE_HOP).matched == 2


@pytest.mark.parametrize("most", with_every_change([0, 1], first=1), ids=["by its file", "by its name"])
def test_a_row_that_was_reported_as_unexpected_is_known_for_ever(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(met_alone, "_NAMED_MOST", most)
    shop.describe(has_ledger=False)
    for day in (0, 8, 9):
        made = orders(range(day * 100, day * 100 + 3), day)
        shop.send(made)
        shop.write("warehouse", made)
    unmatched = at_day(0.5, orders([77])[0])
    shop.write("warehouse", [unmatched])
    first = shop.judged(0)
    assert shop.found(first, STORE_HOP) == {"O77": UNMATCHED}
    shop.judged(8)
    shop.send([at_day(9.5, unmatched)])
    shop.write("warehouse", [at_day(9.5, unmatched)])

    last = shop.judged(9)

    assert shop.found(last, STORE_HOP) == {"O77": TWICE}


def test_an_unmatched_row_that_the_journal_did_not_take_is_known_from_the_files(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    for day in (0, 8, 9):
        made = orders(range(day * 100, day * 100 + 3), day)
        shop.send(made)
        shop.write("warehouse", made)
    unmatched = [at_day(0.5, order) for order in orders([77, 78])]
    shop.write("warehouse", unmatched)
    assert shop.found(shop.judged(0), STORE_HOP) == {"O77": UNMATCHED, "O78": UNMATCHED}
    with connect(shop.journal) as journal, journal.cursor() as cursor:
        cursor.execute("delete from makewhole.finding where key = 'O77'")
        journal.commit()
    shop.judged(8)
    shop.send([at_day(9.5, unmatched[0])])
    shop.write("warehouse", [at_day(9.5, unmatched[0])])

    last = shop.judged(9)

    assert shop.found(last, STORE_HOP) == {"O77": TWICE}


# A record that waited behind one with a time far ahead


def test_a_record_that_stood_behind_one_far_ahead_has_its_rows_further_back(shop: ReconciledShop) -> None:
    """The windows of its own time have none of the log: it lies with the record before it, days later."""
    shop.describe(has_ledger=False, late="1h")
    ahead, behind, fine = orders([900], 5)[0], *orders([6, 8])
    shop.send([ahead, behind, fine])
    shop.write("warehouse", [ahead, behind, fine])
    before = [shop.found(shop.judged(day), STORE_HOP) for day in range(5)]
    shop.write("warehouse", [at_day(5.1, behind)])

    then = shop.judged(5)

    assert before == [{}] * 5
    assert shop.found(then, STORE_HOP) == {"O6": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 2


@pytest.mark.parametrize("is_judged_again", with_every_change([True, False], first=1))
def test_a_record_that_is_far_ahead_itself_has_its_row_further_back(
    shop: ReconciledShop, is_judged_again: bool
) -> None:
    """Nothing in the window of its time says so: the window of the row has found it in the rest of the log."""
    shop.describe(has_ledger=False, late="1h")
    right, fine = orders([2, 4])
    shop.send([at_day(5, right), at_day(5, fine)])
    shop.write("warehouse", [right, fine])
    before = [shop.found(shop.judged(day), STORE_HOP) for day in range(5)]
    if is_judged_again:
        assert shop.found(shop.judged(5), STORE_HOP) == {}
        assert shop.found(shop.judged(0), STORE_HOP) == {}
    shop.write("warehouse", [at_day(5.1, right)])

    then = shop.judged(5)

    assert before == [{}] * 5
    assert shop.found(then, STORE_HOP) == {"O2": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 1


# The row changes


def test_a_late_row_and_one_of_the_window_are_a_duplicate(shop: ReconciledShop, days: list[list[Order]]) -> None:
    shop.judged(0)
    shop.write("warehouse", [at_day(0.5, days[1][0]), at_day(1.5, days[1][0])])

    assert shop.found(shop.judged(1), STORE_HOP) == {"O100": TWICE}


def test_a_late_row_that_another_window_met_is_known(shop: ReconciledShop, days: list[list[Order]]) -> None:
    """Its record is in the window after the one that read it."""
    shop.judged(0)
    shop.write("warehouse", [days[1][0], at_day(0.5, days[2][0])])
    between = shop.judged(1)
    shop.write("warehouse", [at_day(2.5, days[2][0])])

    then = shop.judged(2)

    assert shop.found(between, STORE_HOP) == {}
    assert shop.found(then, STORE_HOP) == {"O200": TWICE}
    assert shop.counts(then, STORE_HOP).matched == 4


@pytest.mark.parametrize("late", ["1d", "0s"])
@pytest.mark.parametrize("moved", [0.5, 1.7], ids=["into the past", "into the window"])
def test_a_row_whose_time_was_changed_is_known(
    shop: ReconciledShop, days: list[list[Order]], moved: float, late: str
) -> None:
    """From a time that no window has read, and from one that the window before has."""
    with_late(shop, late)
    shop.write("warehouse", [at_day(2.5 if moved < 1 else 0.5, days[1][0])])
    shop.judged(0)
    shop.sql("update warehouse set at = %s where id = 'O100'", (BORN + moved * DAY).isoformat())
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    then = shop.judged(1)

    assert shop.found(then, STORE_HOP) == {"O100": TWICE}


@pytest.mark.parametrize("moved", with_every_change([1.5, 0.2, 2.5], first=1))
def test_one_row_is_fine_wherever_its_time_was_moved(
    shop: ReconciledShop, days: list[list[Order]], moved: float
) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][0]), days[2][0]])
    shop.judged(0)
    shop.sql("update warehouse set at = %s where id = 'O100'", (BORN + moved * DAY).isoformat())

    by_day = [shop.found(shop.judged(day), STORE_HOP) for day in (1, 2)]

    assert by_day == [{}, {}]


def test_a_row_that_was_met_and_is_gone_is_no_copy(shop: ReconciledShop, days: list[list[Order]]) -> None:
    shop.write("warehouse", [at_day(0.5, days[1][0])])
    shop.judged(0)
    shop.sql("delete from warehouse where id = 'O100'")
    shop.write("warehouse", [at_day(1.5, days[1][0])])

    then = shop.judged(1)

    assert shop.found(then, STORE_HOP) == {}
    assert shop.counts(then, STORE_HOP).matched == 5
