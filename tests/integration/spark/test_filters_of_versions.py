"""Test on real systems that a filter under `semantics: upsert` asks the latest version of a key."""

import json
from collections.abc import Iterable
from datetime import timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import BORN, DAY, Order, milliseconds
from tests.world.pipeline_file import topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

IN_EUROPE = {"where": "\"region = 'EU'\""}
REPAIRED = IN_EUROPE | {
    "compensation": "{missing: upsert, mismatched: upsert, unexpected: quarantine}",
    "leave": "[note]",
    "write": "{number: int, region: string}",
}
LEFT = ("unexpected", "left_filter")


@pytest.fixture
def customers(shop: ReconciledShop) -> ReconciledShop:
    """Versions of customers; the warehouse has those of the EU, and a column that nothing compares."""
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version bigint")
    shop.sql("alter table warehouse add column note text default 'new'")
    shop.more_columns["version"] = "bigint"
    return shop


def versions(names: Iterable[str], number: int, region: str, day: int = 0) -> list[Order]:
    """A version of each of these customers, an hour after the one before."""
    at = (BORN + day * DAY + timedelta(hours=number)).isoformat()
    fields = {"number": 0, "region": region, "amount": f"{number}.25", "at": at, "version": number}
    return [{"id": name, **fields} for name in names]


def run(shop: ReconciledShop, context: WindowContext) -> WindowState:
    """Repair a window and close it."""
    plan_window(context)
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return shop.certify(context).state


def note(shop: ReconciledShop) -> None:
    shop.sql("update warehouse set note = 'by hand'")


def rows(shop: ReconciledShop) -> list[tuple[object, ...]]:
    return shop.sql("select id, version, region, note from warehouse order by id")


@pytest.mark.parametrize("has_version", [True, False])
def test_a_key_that_left_the_filter_and_is_gone_is_not_written_back(
    customers: ReconciledShop, has_version: bool
) -> None:
    hop = REPAIRED if has_version else REPAIRED | {"write": "{number: int, region: string, version: int}"}
    customers.describe(topic_key="kafka.key", is_upsert=True, has_version=has_version, hop=hop, has_ledger=False)
    stayed, left = versions(["A"], 1, "EU"), versions(["B", "C"], 1, "EU")
    customers.send([*stayed, *left, *versions(["B", "C"], 2, "US")])
    customers.write("warehouse", [*stayed, left[1]])
    note(customers)
    context = customers.judge_and_ask_the_gate()
    assert customers.found(context, STORE_HOP) == {"C": LEFT}
    counts = customers.counts(context, STORE_HOP)
    assert (counts.matched, counts.unexpected, counts.source_keys) == (2, 1, 3)
    assert run(customers, context) is WindowState.CERTIFIED
    assert rows(customers) == [("A", 1, "EU", "by hand")]


def test_a_key_that_leaves_the_filter_on_another_day_is_unexpected_while_its_row_is_there(
    customers: ReconciledShop,
) -> None:
    customers.describe(topic_key="kafka.key", is_upsert=True, has_version=True, hop=REPAIRED, has_ledger=False)
    first = versions(["A", "B", "C"], 1, "EU")
    customers.send([*first, *versions(["D"], 1, "US")])
    customers.write("warehouse", first)
    _, closed = customers.whole_way()
    assert closed.state is WindowState.CERTIFIED
    customers.send([*versions(["B", "C"], 2, "US", 1), *versions(["A"], 2, "EU", 1)])
    customers.sql("delete from warehouse where id in ('A', 'B')")
    customers.write("warehouse", versions(["A"], 2, "EU", 1))
    note(customers)
    second = customers.judge_and_ask_the_gate(1)
    assert customers.found(second, STORE_HOP) == {"C": LEFT}
    assert run(customers, second) is WindowState.CERTIFIED
    assert rows(customers) == [("A", 2, "EU", "by hand")]
    again = customers.judge_and_ask_the_gate()
    assert customers.found(again, STORE_HOP) == {}
    assert run(customers, again) is WindowState.CERTIFIED
    assert rows(customers) == [("A", 2, "EU", "by hand")]


def test_the_filter_asks_the_latest_version_of_all_windows(customers: ReconciledShop) -> None:
    """On the first day B and C leave with version 5, and A stays. On the next A and B are sent again in version 4, and
    a blind loader believes that: A is deleted, B is written. It writes C, too, of which no record came."""
    customers.describe(topic_key="kafka.key", is_upsert=True, has_version=True, hop=REPAIRED, has_ledger=False)
    first, newest = versions(["A", "B", "C", "D"], 1, "EU"), versions(["A"], 5, "EU")
    customers.send([*first, *newest, *versions(["B", "C", "D"], 5, "US")])
    customers.write("warehouse", newest)
    assert customers.whole_way()[1].state is WindowState.CERTIFIED
    customers.send([*versions(["A"], 4, "US", 1), *versions(["B", "D"], 4, "EU", 1)])
    customers.sql("delete from warehouse where id = 'A'")
    customers.write("warehouse", [*versions(["B"], 4, "EU", 1), *versions(["C"], 1, "EU", 1)])
    note(customers)
    second = customers.judge_and_ask_the_gate(1)
    verdicts = customers.found(second, STORE_HOP)
    assert (verdicts["B"], verdicts["C"], verdicts["A"][0], sorted(verdicts)) == (
        LEFT,
        LEFT,
        "missing",
        ["A", "B", "C"],
    )
    counts = customers.counts(second, STORE_HOP)
    assert (counts.matched, counts.unexpected, counts.missing, counts.source_keys) == (1, 2, 1, 2)
    assert run(customers, second) is WindowState.CERTIFIED
    assert rows(customers) == [("A", 5, "EU", "new")]


def test_a_key_that_left_one_of_two_topics_is_of_the_other_while_that_has_it(customers: ReconciledShop) -> None:
    others, other_hop = customers.add_topic(), "others→warehouse"
    customers.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=True,
        hop=REPAIRED,
        has_ledger=False,
        more_points={"others": topic("log", others, key="kafka.key", version='"$.version"')},
        more_hops=[{"from": "others", "to": "warehouse", "semantics": "upsert", **IN_EUROPE}],
    )
    first = versions(["A", "B"], 1, "EU")
    customers.send([*first, *versions(["A", "B"], 2, "US")])
    mirrored(customers, others, [*first, *versions(["A"], 3, "EU"), *versions(["B"], 3, "US")])
    customers.write("warehouse", [*versions(["A"], 3, "EU"), first[1]])
    context = customers.judge_and_ask_the_gate()
    assert (customers.found(context, STORE_HOP), customers.found(context, other_hop)) == ({"B": LEFT}, {"B": LEFT})


def test_a_later_version_that_left_the_filter_excuses_an_absent_row(customers: ReconciledShop) -> None:
    """It stands behind the window, and the loader has deleted the row already."""
    customers.describe(topic_key="kafka.key", is_upsert=True, has_version=True, hop=REPAIRED, has_ledger=False)
    first = versions(["A", "B"], 1, "EU")
    customers.send([*first, *versions(["B"], 2, "US", 1)])
    customers.write("warehouse", first[:1])
    context, closed = customers.whole_way()
    assert customers.found(context, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_loader_that_has_not_reached_the_version_that_left_is_waited_for(customers: ReconciledShop) -> None:
    hop = REPAIRED | {"consumer_group": customers.topic}
    customers.describe(topic_key="kafka.key", is_upsert=True, has_version=True, hop=hop, has_ledger=False)
    first = versions(["A", "B"], 1, "EU")
    customers.send(first)
    customers.write("warehouse", first)
    customers.commit_group(customers.topic, 2)
    assert customers.whole_way()[1].state is WindowState.CERTIFIED
    customers.send([*versions(["Y"], 1, "EU", 1), *versions(["A", "B"], 2, "US", 1)])
    customers.write("warehouse", versions(["Y"], 1, "EU", 1))
    customers.commit_group(customers.topic, 3)
    second, closed = customers.whole_way(1)
    assert {key: verdict for key, (verdict, _) in customers.found(second, STORE_HOP).items()} == {
        "A": "pending",
        "B": "pending",
    }
    assert closed.state is WindowState.CERTIFIED
    customers.sql("delete from warehouse where id = 'A'")
    customers.commit_group(customers.topic, 5)
    customers.send(versions(["Z"], 1, "EU", 2))
    customers.write("warehouse", versions(["Z"], 1, "EU", 2))
    customers.commit_group(customers.topic, 6)
    third = customers.judge_and_ask_the_gate(2)
    assert customers.found(third, STORE_HOP) == {"B": LEFT}
    assert run(customers, third) is WindowState.CERTIFIED


def test_a_mirror_that_deletes_what_left_the_filter_is_right(customers: ReconciledShop) -> None:
    mirror = customers.add_topic()
    customers.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_ledger=False,
        hop=IN_EUROPE,
        more_points={"mirror": topic("log", mirror, key="kafka.key")},
        more_hops=[{"from": "orders", "to": "mirror", "semantics": "upsert", **IN_EUROPE}],
    )
    first, left = versions(["A"], 1, "EU"), versions(["B", "C", "D"], 1, "EU")
    customers.send([*first, *left])
    customers.write("warehouse", [*first, *left])
    mirrored(customers, mirror, [*first, *left])
    assert customers.whole_way()[1].state is WindowState.CERTIFIED
    customers.send([*versions(["B", "C", "D"], 2, "US", 1), *versions(["D"], 3, "EU", 1)])
    mirrored(customers, mirror, [*versions(["D"], 3, "EU", 1)])
    bury(customers, mirror, ["B"], 1)
    customers.sql("delete from warehouse where id in ('B', 'C', 'D')")
    customers.write("warehouse", versions(["D"], 3, "EU", 1))
    second, closed = customers.whole_way(1)
    assert customers.found(second, "orders→mirror") == {"C": LEFT}
    assert customers.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS


def test_what_left_the_filter_behind_a_ledger_is_judged_alike(customers: ReconciledShop) -> None:
    customers.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=True,
        ledger_hop=IN_EUROPE | {"compensation": "{missing: produce}"},
    )
    first, left = versions(["A"], 1, "EU"), versions(["B", "C"], 1, "EU")
    customers.write("outbox", [*first, *left, *versions(["B", "C"], 2, "US")])
    customers.send([*first, left[0]])
    customers.write("warehouse", [*first, left[0]])
    context = customers.judge_and_ask_the_gate()
    assert customers.found(context, LEDGER_HOP) == {"B": LEFT}
    before = len(customers.read())
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert len(customers.read()) == before


def test_a_row_of_the_ledger_that_left_the_filter_since_it_was_judged_is_not_sent(customers: ReconciledShop) -> None:
    customers.describe(
        topic_key="kafka.key",
        is_upsert=True,
        has_version=True,
        ledger_hop=IN_EUROPE | {"compensation": "{missing: produce}"},
    )
    first = versions(["A", "B"], 1, "EU")
    customers.write("outbox", first)
    customers.send(first[:1])
    customers.write("warehouse", first[:1])
    context = customers.judge_and_ask_the_gate()
    assert customers.found(context, LEDGER_HOP) == {"B": ("missing", "never_produced")}
    customers.sql("update outbox set region = 'US' where id = 'B'")
    before = len(customers.read())
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert len(customers.read()) == before
    assert customers.outcome_of(context, LEDGER_HOP, "B") == (
        "refused",
        "stale: the row of this key in outbox has left the filter `region = 'EU'` by now",
    )


def mirrored(shop: ReconciledShop, name: str, made: Iterable[Order]) -> None:
    """Send versions into another topic."""
    client = producer(shop.bootstrap)
    for order in made:
        value, moment = json.dumps(order), milliseconds(order["at"])
        client.produce(name, partition=0, key=order["id"], value=value, timestamp=moment)
    assert client.flush(30) == 0


def bury(shop: ReconciledShop, name: str, keys: Iterable[str], day: int) -> None:
    """Send tombstones into a topic."""
    client = producer(shop.bootstrap)
    moment = int((BORN + day * DAY + timedelta(hours=5)).timestamp() * 1000)
    for key in keys:
        client.produce(name, partition=0, key=key, value=None, timestamp=moment)
    assert client.flush(30) == 0
