"""Test `semantics: upsert` on real systems: versions, tombstones, a target behind, ahead, or out of date."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plan_progress
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

STALE = ("mismatched", "stale_version")


@pytest.fixture
def changes(shop: ReconciledShop) -> ReconciledShop:
    """The tables hold versions, and the record key is the business key."""
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version bigint")
    shop.more_columns["version"] = "bigint"
    shop.describe(topic_key="kafka.key", is_upsert=True)
    return shop


def version(numbers: Iterable[int], number: int, day: int = 0) -> list[Order]:
    """A version of these orders, an hour after the one before."""
    at = (BORN + day * DAY + timedelta(hours=number)).isoformat()
    return [order | {"version": number, "amount": f"{number}.25", "at": at} for order in orders(numbers)]


def bury(shop: ReconciledShop, keys: Iterable[str], number: int, day: int = 0) -> None:
    """Tombstones."""
    client = Producer({"bootstrap.servers": shop.bootstrap})
    at = BORN + day * DAY + timedelta(hours=number)
    for key in keys:
        client.produce(shop.topic, partition=0, key=key, value=None, timestamp=int(at.timestamp() * 1000))
    assert client.flush(30) == 0


def test_only_the_latest_version_of_a_key_must_have_arrived(changes: ReconciledShop) -> None:
    first, second = version(range(6), 1), version(range(6), 2)
    changes.write("outbox", [*first, *second])
    changes.send(first)
    changes.send(second[:5])
    changes.write("warehouse", [*second[:3], first[3], first[5]])

    context, closed = changes.whole_way()

    assert changes.found(context, LEDGER_HOP) == {"O5": STALE}
    assert changes.found(context, STORE_HOP) == {"O3": STALE, "O4": ("missing", "lost_after_topic")}
    stale = changes.evidence(context, STORE_HOP, "O3")
    assert (stale["latest"]["offset"], stale["columns"]) == (9, {"amount": {"source": "2.25", "target": "1.25"}})
    assert changes.counts(context, STORE_HOP).matched == 4
    assert closed.state is WindowState.GAPS


def test_deleted_keys_are_gone_from_the_store_or_stale(changes: ReconciledShop) -> None:
    made = version(range(4), 1)
    changes.write("outbox", made[:2])
    changes.send(made)
    bury(changes, ["O2", "O3"], 2)
    changes.write("warehouse", made[:3])

    context, _ = changes.whole_way()

    assert changes.found(context, LEDGER_HOP) == {}
    assert changes.found(context, STORE_HOP) == {"O2": STALE}
    assert changes.evidence(context, STORE_HOP, "O2")["latest"]["tombstone"] is True
    accounting = changes.accounting(context)
    assert (accounting["data"], accounting["undecodable"]) == (6, 0)


def test_a_tombstone_that_hides_its_key_in_the_value_is_undecodable_as_ever(shop: ReconciledShop) -> None:
    shop.describe(is_upsert=True)
    shop.trade(orders(range(3)))
    shop.send_raw(None)

    context, closed = shop.whole_way()

    assert shop.accounting(context)["undecodable"] == 1
    assert closed.state is WindowState.NOT_KNOWN


def test_a_store_that_is_ahead_of_the_window_is_fine(changes: ReconciledShop) -> None:
    """The next day's versions are there already when the window is judged."""
    changes.trade(version(range(4), 1))
    context = changes.open()
    ahead = version(range(2), 2, 1)
    changes.write("outbox", ahead)
    changes.send(ahead)
    bury(changes, ["O2"], 3, 1)
    changes.sql("delete from warehouse where id in ('O0', 'O1', 'O2')")
    changes.write("warehouse", [*ahead, version([7], 1)[0]])
    changes.sql("update warehouse set amount = 9 where id = 'O3'")

    changes.judge(context)

    assert changes.found(context, LEDGER_HOP) == {}
    assert changes.found(context, STORE_HOP) == {
        "O3": ("mismatched", "value_differs"),
        "O7": ("unexpected", "not_in_source"),
    }

    changes.sql("delete from warehouse where id = 'O7'; update warehouse set amount = 1.25 where id = 'O3'")
    second, closed = changes.whole_way(1)
    assert changes.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED
    again = changes.open()
    changes.judge(again)
    assert (changes.found(again, LEDGER_HOP), changes.found(again, STORE_HOP)) == ({}, {})


@pytest.mark.parametrize("later", [timedelta(0), timedelta(hours=1)])
def test_a_version_that_the_ledger_shows_after_it_was_read_is_the_latest(
    changes: ReconciledShop, later: timedelta
) -> None:
    """Its row is committed after its record was sent, and its time need not have moved."""
    first = version(range(3), 1)
    at = (BORN + timedelta(hours=1) + later).isoformat()
    second = [order | {"at": at} for order in version(range(2), 2)]
    changes.write("outbox", first)
    changes.send([*first, *second])
    changes.write("warehouse", [*second, first[2]])
    context = changes.open()
    changes.snapshot(context)
    changes.write("outbox", second)

    changes.reconcile(context)

    assert (changes.found(context, LEDGER_HOP), changes.found(context, STORE_HOP)) == ({}, {})


def test_a_row_that_is_brought_up_to_date_after_it_was_read_is_up_to_date(changes: ReconciledShop) -> None:
    """It is another row of the table then, with another place, and still one."""
    first, second = version(range(3), 1), version(range(3), 2)
    changes.write("outbox", [*first, *second])
    changes.send([*first, *second])
    changes.write("warehouse", first)
    context = changes.open()
    changes.snapshot(context)
    changes.sql("update warehouse set amount = 2.25, version = 2 where id <> 'O2'")

    changes.reconcile(context)

    assert changes.found(context, STORE_HOP) == {"O2": STALE}


def test_a_version_of_the_ledger_counts_a_settle_time_after_it_could_be_seen(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, settle="1h")
    changes.trade(version(range(3), 1))
    changes.judged()
    changes.let_pass(timedelta(hours=1.1))
    changes.write("outbox", version([1], 2))
    assert changes.found(changes.judged(), LEDGER_HOP) == {"O1": ("pending", "in_flight")}

    changes.let_pass(timedelta(hours=1.1))
    assert changes.found(changes.judged(), LEDGER_HOP) == {"O1": STALE}


def test_what_is_not_consumed_yet_is_pending_and_judged_with_its_versions_next_time(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, hop={"consumer_group": "loader"})
    first, second = version(range(3), 1), version(range(3), 2)
    changes.write("outbox", [*first, *second])
    changes.send([*first, *second])
    changes.write("warehouse", first)
    changes.commit_group("loader", 3)

    context, closed = changes.whole_way()

    assert changes.found(context, STORE_HOP) == dict.fromkeys(("O0", "O1", "O2"), ("pending", "not_yet_consumed"))

    changes.sql("update warehouse set amount = 2.25, version = 2 where id <> 'O2'")
    changes.trade(version([10], 1, 1))
    changes.commit_group("loader", 7)
    following, closed = changes.whole_way(1)
    assert changes.found(following, STORE_HOP) == {"O2": STALE}
    assert closed.state is WindowState.GAPS


def test_a_number_orders_versions_wherever_they_lie(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, has_version=True)
    first, second = version(range(4), 1), version(range(4), 2)
    changes.write("outbox", [*first, *second])
    changes.send([*second, *first])
    changes.write("warehouse", [*second[:3], second[3] | {"version": 1}])

    context, _ = changes.whole_way()

    assert changes.found(context, LEDGER_HOP) == {}
    assert changes.found(context, STORE_HOP) == {"O3": STALE}
    assert changes.evidence(context, STORE_HOP, "O3")["latest"]["version"] == 2


def test_compaction_loses_nothing(changes: ReconciledShop) -> None:
    changes.change_topic(cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.001)
    for number in (1, 2, 3):
        changes.write("outbox", version(range(20), number))
        changes.send(version(range(20), number))
    changes.trade(version([99], 4))
    changes.write("warehouse", version(range(20), 3))

    context, closed = changes.whole_way()

    assert closed.state is WindowState.CERTIFIED
    assert [changes.counts(context, hop).matched for hop in (LEDGER_HOP, STORE_HOP)] == [21, 21]
    accounting = changes.accounting(context)
    assert accounting["data"] + accounting["compacted"] == 61


def test_the_latest_version_is_what_a_repair_writes(changes: ReconciledShop) -> None:
    first, second = version(range(3), 1), version(range(3), 2)
    changes.write("outbox", [*first, *second])
    changes.send([*first, *second])
    changes.write("warehouse", second[:2])
    context = changes.judge_and_ask_the_gate()

    frozen = plan_window(context)
    assert frozen.plan is not None
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    with connect(changes.journal) as journal:
        actions = [stored.action for stored in plan_progress.actions_of(journal, frozen.plan.id)]

    assert Counter(action.remedy for action in actions) == {"upsert": 1}
    assert changes.sql("select amount::text, version from warehouse where id = 'O2'") == [("2.25", 2)]
    assert actions[0].before.origin == f"{changes.topic}/0/5"
    assert changes.certify(context).state is WindowState.CERTIFIED


def test_a_version_waits_for_itself_however_often_its_key_changes(changes: ReconciledShop) -> None:
    """A group that is always an hour behind loses nothing; one version that it never reaches is a loss after a day."""
    changes.describe(topic_key="kafka.key", is_upsert=True, hop={"consumer_group": "loader"})
    waiting = dict.fromkeys(("O0", "O1"), ("pending", "not_yet_consumed"))
    for day in (0, 1, 2):
        changes.trade(version(range(2), day + 1, day), unloaded=version(range(2), day + 1, day))
        if day:
            changes.sql("delete from warehouse")
            changes.write("warehouse", version(range(2), day, day - 1))
        changes.commit_group("loader", 2 * day)
        context, closed = changes.whole_way(day)
        assert changes.found(context, STORE_HOP) == waiting
        assert closed.handed_over == 2
        changes.let_pass(timedelta(hours=20))

    changes.let_pass(timedelta(hours=20))
    changes.trade(version([7], 1, 3))
    context, closed = changes.whole_way(3)
    assert changes.found(context, STORE_HOP) == dict.fromkeys(("O0", "O1"), ("mismatched", "not_consumed"))
    assert closed.state is WindowState.GAPS
