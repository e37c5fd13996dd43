"""Test that a piece of a log's tail is read once for all windows that ask for keys which it has not."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from makewhole_spark.carrier import carry_released
from makewhole_spark.reconcile import judge_window
from makewhole_spark.reconcile.tails import log_tail
from makewhole_spark.reconcile.tails.log_tail import TailRead, read_tail
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

OFFSETS_OF_A_PIECE = 10
MISSING = ("missing", "lost_after_topic")
UNMATCHED = ("unexpected", "not_in_source")
UNSENT = ("missing", "never_produced")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of offsets that were read in the rest of the log, window by window. Its pieces are short."""
    offsets: list[int] = []

    def carrying(spark: Any, journal: Any, tasks: Sequence[Any], run: Callable[[Any], Any]) -> list[Any]:
        answers = carry_released(spark, journal, tasks, run)
        if run is read_tail:
            offsets.append(sum(answer.offsets for answer in answers if isinstance(answer, TailRead)))
        return answers

    monkeypatch.setattr(judge_window, "carry_released", carrying)
    monkeypatch.setattr(log_tail, "_RECORDS_PER_TASK", OFFSETS_OF_A_PIECE)
    return offsets


def trade(shop: ReconciledShop, day: int) -> list[Order]:
    """Trade fifteen orders of a day: one is not sent, one is not loaded, and the store has an unmatched row."""
    made = orders(range(day * 100, day * 100 + 15), day)
    shop.trade(made, unsent=made[:1], unloaded=made[1:2])
    shop.write("warehouse", orders([day * 100 + 50], day))
    return made


def found(shop: ReconciledShop, day: int) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    window = shop.judged(day)
    return shop.found(window, LEDGER_HOP), shop.found(window, STORE_HOP)


def expected(day: int) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    return {f"O{day * 100}": UNSENT}, {f"O{day * 100 + 1}": MISSING, f"O{day * 100 + 50}": UNMATCHED}


def filters(shop: ReconciledShop) -> list[str]:
    return sorted(path.name for path in (shop.folder / "storage").rglob("tails/**/*.filter"))


def test_a_backfill_reads_the_rest_of_the_log_once(shop: ReconciledShop, read: list[int]) -> None:
    """Fourteen records a day: what is read again is no whole piece."""
    for day in range(5):
        trade(shop, day)

    assert [found(shop, day) for day in range(5)] == [expected(day) for day in range(5)]
    assert read == [56, 2, 8, 4, 0]


@pytest.mark.extended
def test_a_key_that_a_piece_has_is_found_in_it(shop: ReconciledShop, read: list[int]) -> None:
    """A record of the first two days comes three days later: each of them finds its own."""
    made = [trade(shop, day) for day in range(4)]
    shop.send([made[0][0], made[1][0]])

    assert [found(shop, day)[0] for day in range(3)] == [{}, {}, expected(2)[0]]


def test_a_filter_that_is_broken_is_made_again(shop: ReconciledShop, read: list[int]) -> None:
    for day in range(5):
        trade(shop, day)
    found(shop, 0)
    [broken] = (shop.folder / "storage").rglob("0-50-60-*.filter")
    broken.write_bytes(broken.read_bytes()[:-1])

    assert [found(shop, day) for day in (1, 2)] == [expected(1), expected(2)]
    assert broken.exists()


def test_a_topic_that_was_made_again_is_read(shop: ReconciledShop, read: list[int]) -> None:
    made = [trade(shop, day) for day in range(4)]
    found(shop, 0)
    shop.make_topic_again()
    shop.send(order for of_day in made[1:] for order in of_day[1:])
    before = len(filters(shop))

    found(shop, 1)

    assert len(filters(shop)) > before


@pytest.mark.extended
def test_filters_of_what_is_in_windows_by_now_are_removed(shop: ReconciledShop, read: list[int]) -> None:
    for day in range(4):
        trade(shop, day)

    left = []
    for day in range(3):
        found(shop, day)
        left.append([name.rsplit("-", 3)[0] for name in filters(shop)])

    assert left == [["0-20-30", "0-30-40", "0-40-50"], ["0-20-30", "0-30-40", "0-40-50"], ["0-40-50"]]
