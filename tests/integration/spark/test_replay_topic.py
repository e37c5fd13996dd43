"""Test a replay topic beside the pipeline, and one that is itself a point with a hop, the whole way, twice."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.pipeline_file import topic as topic_point
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TO_RETRY = {"redeliver_to": "retry"}
BY_KEY = {"kind": "store", "connection": "db", "table": "warehouse", "key": "id"}


def test_a_replay_topic_that_no_hop_joins_is_written_and_never_compared(shop: ReconciledShop) -> None:
    topic = shop.add_topic()
    shop.describe(hop=TO_RETRY, more_points={"retry": topic_point("log", topic)})
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])

    first = repaired(shop, day=0)

    assert set(shop.manifests(first)) == {"outbox", "orders", "warehouse"}
    assert set(first.window.ranges) == {"orders"}
    assert in_topic(shop, topic) == [b"O4", b"O5"]
    assert in_topic(shop, shop.topic) == [order["id"].encode() for order in made]


def test_a_replay_topic_with_a_hop_is_judged_and_its_replays_are_not_unmatched(shop: ReconciledShop) -> None:
    """The table stands in the file twice, the second time without `time`: what never passed the replay topic is then
    not asked for there."""
    topic = shop.add_topic()
    shop.describe(
        hop=TO_RETRY,
        allow_empty=True,
        more_points={"retry": topic_point("log", topic), "by_key": BY_KEY},
        more_hops=[{"from": "retry", "to": "by_key"}],
    )
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    repaired(shop, day=0)

    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)

    assert shop.counts(second, "retry→by_key").matched == 2
    assert [shop.found(second, hop) for hop in (LEDGER_HOP, STORE_HOP, "retry→by_key")] == [{}, {}, {}]
    assert closed.state is WindowState.CERTIFIED


def repaired(shop: ReconciledShop, day: int) -> WindowContext:
    """A window whose two missing orders were redelivered and loaded."""
    context = shop.judge_and_ask_the_gate(day)
    frozen = plan_window(context)
    assert frozen.plan is not None
    assert [action.target for action in frozen.actions] == ["retry", "retry"]
    compensate_window(context, lambda _: None)
    shop.write("warehouse", orders([4, 5]))
    verified = verify_window(context, lambda *_: None)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert shop.certify(context).state is WindowState.CERTIFIED
    return context


def in_topic(shop: ReconciledShop, topic: str) -> list[bytes | None]:
    """Return the keys of a topic's committed records, in order."""
    return [record.key for record in shop.read(topic)]
