"""Test versions around the window that is judged: aborted and filtered ones, and those of a topic that is gone."""

import pytest

from makewhole.model.window import WindowState
from tests.integration.spark.test_versions import version
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


@pytest.fixture
def changes(shop: ReconciledShop) -> ReconciledShop:
    """The tables hold versions, and the record key is the business key."""
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version bigint")
    shop.more_columns["version"] = "bigint"
    shop.describe(topic_key="kafka.key", is_upsert=True)
    return shop


def test_a_store_with_an_aborted_version_of_a_later_window_is_mismatched(changes: ReconciledShop) -> None:
    changes.trade(version(range(3), 1))
    assert changes.whole_way()[1].state is WindowState.CERTIFIED
    aborted = version([1], 2, 1)
    changes.end_transaction(changes.begin_transaction(aborted), is_committed=False)
    changes.trade(version([7], 1, 1))
    assert changes.whole_way(1)[1].state is WindowState.CERTIFIED
    changes.sql("update warehouse set amount = 2.25, version = 2 where id = 'O1'")

    again, closed = changes.whole_way()

    assert changes.found(again, STORE_HOP) == {"O1": ("mismatched", "value_differs")}
    assert closed.state is WindowState.GAPS


def test_a_store_with_a_later_version_that_the_filter_excludes_is_mismatched(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, hop={"where": "\"region = 'EU'\""})
    made = version([0, 2, 4], 1)
    changes.trade(made)
    assert changes.whole_way()[1].state is WindowState.CERTIFIED
    moved = [order | {"region": "US"} for order in version([2], 2, 1)]
    changes.write("outbox", moved)
    changes.send(moved)
    changes.trade(version([8], 1, 1))
    second = changes.judge_and_ask_the_gate(1)
    assert changes.found(second, STORE_HOP) == {"O2": ("unexpected", "left_filter")}
    changes.sql("update warehouse set amount = 2.25, version = 2 where id = 'O2'")

    again, closed = changes.whole_way()

    assert changes.found(again, STORE_HOP) == {"O2": ("mismatched", "value_differs")}
    assert closed.state is WindowState.GAPS


def test_a_version_of_the_topic_as_it_is_counts_after_one_of_the_topic_that_is_gone(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, hop={"consumer_group": "loader"})
    made = version(range(10), 1)
    changes.trade(made, unloaded=made[9:])
    changes.commit_group("loader", 9)
    _, closed = changes.whole_way()
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 1)
    changes.make_topic_again()
    changes.send(made)  # at the offsets that it has now
    changes.send([])
    newer = version([9], 2, 1)
    changes.trade(newer)
    changes.commit_group("loader", 11)

    second, closed = changes.whole_way(1)

    assert changes.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_lower_offset_of_the_topic_as_it_is_counts_after_one_of_the_topic_that_is_gone(
    changes: ReconciledShop,
) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, hop={"consumer_group": "loader"})
    made = version(range(10), 1)
    changes.trade(made, unloaded=made[9:])
    changes.commit_group("loader", 9)
    assert changes.whole_way()[1].handed_over == 1
    changes.make_topic_again()
    changes.trade(version([9], 2, 1))
    changes.commit_group("loader", 1)

    second, _ = changes.whole_way(1)

    assert changes.found(second, STORE_HOP) == {}
    assert changes.found(second, LEDGER_HOP).get("O9") is None


def test_a_version_that_was_in_flight_in_a_certified_window_and_never_came_is_missing(changes: ReconciledShop) -> None:
    """The loader deleted the older version, and died before it wrote the newer one: nothing but the older one was ever
    seen in the store."""
    changes.describe(topic_key="kafka.key", is_upsert=True, has_version=True, hop={"consumer_group": "loader"})
    changes.trade(version(range(4), 1))
    changes.write("outbox", newer := version([1, 2], 2))
    changes.send(newer)
    changes.commit_group("loader", 4)
    first, closed = changes.whole_way()
    assert changes.found(first, STORE_HOP) == dict.fromkeys(("O1", "O2"), ("pending", "not_yet_consumed"))
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 2)
    changes.sql("delete from warehouse where id in ('O0', 'O1')")
    changes.commit_group("loader", 6)

    again, closed = changes.whole_way()

    assert changes.found(again, STORE_HOP) == {
        "O0": ("vanished", "gone_since_certified"),
        "O1": ("missing", "committed_before_written"),
        "O2": ("mismatched", "stale_version"),
    }
    assert closed.state is WindowState.GAPS


def test_several_rows_that_all_held_an_older_version_prove_nothing_of_the_newer(changes: ReconciledShop) -> None:
    changes.describe(topic_key="kafka.key", is_upsert=True, has_version=True, tolerance={"duplicate": "2"})
    first, second = version(range(4), 1), version([1, 2], 2)
    changes.trade(first, unloaded=first[2:3])
    changes.write("outbox", second)
    changes.send(second)
    changes.write("warehouse", [first[1], *second[1:], *second[1:]])
    several = ("duplicate", "upstream_duplicate")
    context, closed = changes.whole_way()
    assert changes.found(context, STORE_HOP) == {"O1": several, "O2": several}
    assert closed.state is WindowState.CERTIFIED
    changes.sql("delete from warehouse where id in ('O1', 'O2')")

    again, _ = changes.whole_way()

    assert changes.found(again, STORE_HOP) == {
        "O1": ("missing", "lost_after_topic"),
        "O2": ("vanished", "gone_since_certified"),
    }
