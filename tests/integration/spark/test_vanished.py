"""Test keys that a store lacks although a certified window has seen their rows: rows that were purged."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.hops import Remedy
from makewhole.model.window import WindowState
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

VANISHED = ("vanished", "gone_since_certified")
MISSING = ("missing", "lost_after_topic")
UPSERT = {"compensation": "{missing: upsert}"}


def test_a_row_that_a_certified_window_saw_and_that_is_gone_has_vanished(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT)
    made = orders(range(10))
    shop.trade(made)
    _, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id in ('O3', 'O4')")

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED, "O4": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}
    counts = shop.counts(context, STORE_HOP)
    assert (counts.source_keys, counts.matched, counts.missing, counts.vanished) == (10, 8, 0, 2)
    assert plan_window(context).plan is None
    closed = shop.certify(context)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert shop.certified_hops(context)[STORE_HOP]["vanished"] == 2
    assert "vanished" not in shop.certified_hops(context)[LEDGER_HOP]

    third, closed = shop.whole_way()
    assert (shop.found(third, STORE_HOP), closed.state) == (
        {"O3": VANISHED, "O4": VANISHED},
        WindowState.CERTIFIED,
    )


def test_a_row_that_no_certified_window_saw_is_missing(shop: ReconciledShop) -> None:
    """The first revision was not certified: nothing vouches for what it saw."""
    made = orders(range(10))
    shop.trade(made, unloaded=made[5:6])
    _, closed = shop.whole_way()
    assert closed.state is WindowState.GAPS
    shop.sql("delete from warehouse where id = 'O3'")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O3": MISSING, "O5": MISSING}
    assert closed.state is WindowState.GAPS


def test_a_row_that_a_plan_wrote_and_that_is_gone_has_vanished(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[5:6])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.certify(context).state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O5'")

    again, closed = shop.whole_way()

    assert (shop.found(again, STORE_HOP), closed.state) == ({"O5": VANISHED}, WindowState.CERTIFIED)


@pytest.mark.parametrize("day", [1, 4])
@pytest.mark.parametrize("is_ahead", [False, True], ids=["behind", "ahead"])
def test_a_row_that_a_certified_window_met_before_its_record_and_that_is_gone_has_vanished(
    shop: ReconciledShop, day: int, is_ahead: bool
) -> None:
    """The record lies in a later window, behind one with a time ahead, or as its own is ahead: no window with its
    record has seen the row."""
    shop.describe(has_ledger=False, late="1h", allow_empty=True)
    first, made, ahead = orders([2]), orders([4, 6, 8]), orders([900], day)
    shop.send([*first, *ahead, *(orders([4, 6, 8], day) if is_ahead else made)])
    shop.write("warehouse", [*first, *ahead, *made])
    assert [shop.whole_way(night)[1].state for night in range(day)] == [WindowState.CERTIFIED] * day
    shop.sql("delete from warehouse where id in ('O4', 'O8')")

    context, closed = shop.whole_way(day)

    assert shop.found(context, STORE_HOP) == {"O4": VANISHED, "O8": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O4")["seen"] == {"window": 1, "revision": 1}
    assert closed.state is WindowState.CERTIFIED


def test_a_row_that_was_met_before_its_record_by_no_certified_window_is_missing(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    made = orders([2, 4], 0)
    shop.trade([made[0], *orders([900], 1), made[1]], unloaded=made[:1])
    assert shop.whole_way()[1].state is WindowState.GAPS
    shop.sql("delete from warehouse where id = 'O4'")

    context, _ = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O4": MISSING}


def test_an_unmatched_row_that_is_gone_when_its_record_comes_is_missing(shop: ReconciledShop) -> None:
    """Nothing had written it when its window was certified: that it is gone may have been a person's repair."""
    shop.describe(has_ledger=False, tolerance={"unexpected": "1"})
    shop.trade(orders([2, 4]))
    shop.write("warehouse", orders([6]))
    first, closed = shop.whole_way()
    assert (shop.found(first, STORE_HOP), closed.state) == (
        {"O6": ("unexpected", "not_in_source")},
        WindowState.CERTIFIED,
    )
    shop.sql("delete from warehouse where id = 'O6'")
    shop.trade([*orders([8], 1), *orders([6], 1)], unloaded=orders([6], 1))

    context, _ = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O6": MISSING}


@pytest.mark.parametrize("is_upsert", [False, True])
def test_a_record_that_comes_again_after_a_purge_is_of_what_has_vanished_and_a_new_version_is_missing(
    shop: ReconciledShop, is_upsert: bool
) -> None:
    """The new version was never seen in the store: that it is absent may be a loss."""
    shop.describe(is_upsert=is_upsert, topic_key="kafka.key", has_ledger=False)
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O3'")
    following = [*orders(range(100, 105), 1), *orders([3], 1)]
    shop.trade(following, unloaded=orders([3], 1))

    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O3": MISSING if is_upsert else VANISHED}
    assert closed.state is (WindowState.GAPS if is_upsert else WindowState.CERTIFIED)
    if not is_upsert:
        assert shop.evidence(second, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}


def test_the_newest_certified_window_with_a_record_of_the_key_says_when_a_row_was_last_seen(
    shop: ReconciledShop,
) -> None:
    """Whether another key of its bucket is asked for in other windows changes nothing."""
    shop.describe(topic_key="kafka.key", has_ledger=False)
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.trade([*orders(range(100, 105), 1), *orders([3], 1)], unloaded=orders([3], 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O3'")

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 2, "revision": 1}


@pytest.mark.parametrize("remedy", [Remedy.UPSERT, Remedy.REDELIVER])
def test_what_has_vanished_is_brought_back_where_the_file_asks_for_it(shop: ReconciledShop, remedy: Remedy) -> None:
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.describe(hop={"compensation": f"{{vanished: {remedy}}}"})
    shop.sql("delete from warehouse where id = 'O3'")

    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED}
    assert [(action.remedy, action.key) for action in frozen.actions] == [(remedy, "O3")]
    compensate_window(context, lambda _: None)
    sent = [record.key_text for record in shop.read()][len(made) :]
    assert sent == (["O3"] if remedy is Remedy.REDELIVER else [])
    shop.write("warehouse", [order for order in made if order["id"] in sent])  # as its loader does
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.sql("select count(*) from warehouse where id = 'O3'") == [(1,)]
    assert shop.outcomes(context) == {"O3": "repaired"}
    assert shop.certify(context).state is WindowState.CERTIFIED


@pytest.mark.parametrize("is_upsert", [False, True], ids=["event", "upsert"])
def test_a_row_that_was_in_flight_and_that_a_following_window_saw_has_vanished(
    shop: ReconciledShop, is_upsert: bool
) -> None:
    """Keys are handed over once and twice, then the store is purged, and the first window is run again. One of them was
    never seen by any window."""
    loader = {"consumer_group": "loader"}
    shop.describe(hop=loader, topic_key="kafka.key", has_ledger=False, is_upsert=is_upsert, max_age="10d")
    made, second, third = orders(range(10)), orders([100, 101], 1), orders([200, 201], 2)
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)
    assert shop.whole_way()[1].handed_over == 4
    shop.trade(second, unloaded=second)
    shop.write("warehouse", made[6:8])
    shop.commit_group("loader", 8)
    assert shop.whole_way(1)[1].handed_over == 4
    shop.trade(third, unloaded=third)
    shop.write("warehouse", [made[8], *second])
    shop.sql("delete from warehouse where id = 'O9'")
    shop.commit_group("loader", 9)
    assert shop.whole_way(2)[1].handed_over == 3
    shop.commit_group("loader", 14)
    shop.sql("delete from warehouse")

    context, closed = shop.whole_way()

    names = [order["id"] for order in made]
    assert shop.found(context, STORE_HOP) == {
        **dict.fromkeys(names[:9], VANISHED),
        names[9]: ("missing", "committed_before_written"),
    }
    seen = {name: shop.evidence(context, STORE_HOP, name)["seen"]["window"] for name in names[:9]}
    assert seen == dict.fromkeys(names[:6], 1) | dict.fromkeys(names[6:8], 2) | {names[8]: 3}
    assert closed.state is WindowState.GAPS


def test_a_row_that_was_in_flight_in_a_window_with_gaps_and_that_the_next_one_saw_has_vanished(
    shop: ReconciledShop,
) -> None:
    """The first window handed its key over all the same."""
    shop.describe(hop={"consumer_group": "loader"}, has_ledger=False)
    made = orders(range(10))
    shop.trade(made, unloaded=[made[3], made[9]])
    shop.commit_group("loader", 9)
    first, closed = shop.whole_way()
    assert (closed.state, len(shop.found(first, STORE_HOP))) == (WindowState.GAPS, 2)
    shop.trade(orders([100], 1))
    shop.write("warehouse", [made[9]])
    shop.commit_group("loader", 11)
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O9'")

    context, _ = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O3": ("missing", "committed_before_written"), "O9": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O9")["seen"] == {"window": 2, "revision": 1}
