"""Test compacted topics whose record key is, or is not, the business key."""

import itertools
import json
import time
from collections.abc import Callable, Sequence

import pytest

from tests.world.orders import BORN, DAY, Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import Found, ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

RecordKey = Callable[[Order], str]
COMPACTED = ("undecidable", "compacted")


def by_customer(order: Order) -> str:
    """Three customers have all orders."""
    return f"customer-{int(order['number']) % 3}"


def in_an_envelope(order: Order) -> str:
    """As Kafka Connect writes a key."""
    fields = [{"type": "string", "optional": False, "field": "id"}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": {"id": order["id"]}})


@pytest.fixture
def changes(shop: ReconciledShop) -> ReconciledShop:
    """A compacted topic of the latest versions of orders, whose key is a field of the value."""
    shop.describe(is_upsert=True)
    shop.change_topic(cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.001)
    return shop


def send(shop: ReconciledShop, made: Sequence[Order], record_key: RecordKey) -> None:
    client = producer(shop.bootstrap, linger_ms=5)
    for order in made:
        stamp = milliseconds(order["at"])
        client.produce(shop.topic, partition=0, key=record_key(order), value=shop.encode(order), timestamp=stamp)
    assert client.flush(30) == 0


def until_compacted(shop: ReconciledShop, rolls: Sequence[Order], record_key: RecordKey, most: int) -> None:
    """Send an order again and again until the log has at most so many records of others: segments are rolled by the
    times of their records."""
    deadline, last = time.monotonic() + 60, rolls[-1]
    while sum(record.key_text != record_key(last) for record in shop.read()) > most:
        assert time.monotonic() < deadline
        send(shop, [*rolls] * 9, record_key)
        time.sleep(0.5)


def later(made: Sequence[Order], hours: int = 1) -> list[Order]:
    return [order | {"at": (BORN + hours * DAY / 24).isoformat()} for order in made]


def test_what_compaction_took_of_other_keys_is_not_known(changes: ReconciledShop) -> None:
    """The record key is the customer: of the orders of each the last one is left, and all have their rows."""
    made, rolls = orders(range(9)), later(orders([30]))
    changes.write("outbox", [*made, *rolls])
    send(changes, made, by_customer)
    until_compacted(changes, rolls, lambda _: "roll", 3)
    send(changes, rolls, lambda _: "roll")
    changes.write("warehouse", [*made[:8], *rolls])

    context = changes.judged()

    assert changes.accounting(context)["compacted"] > 0
    taken = dict.fromkeys((order["id"] for order in made[:6]), COMPACTED)
    assert changes.found(context, LEDGER_HOP) == taken
    assert changes.found(context, STORE_HOP) == taken | {"O8": COMPACTED}


@pytest.mark.parametrize("record_key", [lambda order: order["id"], in_an_envelope], ids=["the key", "an envelope"])
def test_a_record_key_with_the_business_key_leaves_nothing_open(changes: ReconciledShop, record_key: RecordKey) -> None:
    made, rolls, unsent = orders(range(9)), later(orders([30])), orders([40])
    changes.write("outbox", [*made, *rolls, *unsent])
    for _ in range(3):
        send(changes, made, record_key)
    until_compacted(changes, rolls, record_key, 9)
    changes.write("warehouse", [*made[:8], *rolls, *unsent])

    context = changes.judged()

    assert changes.accounting(context)["compacted"] > 0
    verdicts: Found = changes.found(context, LEDGER_HOP)
    assert {key: verdict for key, (verdict, _) in verdicts.items()} == {"O40": "missing"}
    assert changes.found(context, STORE_HOP) == {
        "O8": ("missing", "lost_after_topic"),
        "O40": ("unexpected", "not_in_source"),
    }


def until_gone(shop: ReconciledShop, offsets: Sequence[int], rolls: Sequence[Order], record_key: RecordKey) -> None:
    """Send orders of later and later hours until compaction has taken the records at these offsets: a newer record of
    the key must be in a segment that ended, too."""
    deadline, hours = time.monotonic() + 60, itertools.count(30)
    while any(record.offset in offsets for record in shop.read()):
        assert time.monotonic() < deadline
        send(shop, later(rolls, hours=next(hours)), record_key)
        time.sleep(0.5)


def test_another_kafka_key_that_the_rest_of_the_log_has_counts_for_the_window(changes: ReconciledShop) -> None:
    """One of two producers takes the customer as the record key: what is left of the window has all keys alike."""
    made, rolls = orders(range(9)), orders(range(30, 33))
    for table in ("outbox", "warehouse"):
        changes.write(table, made)
    send(changes, made[:6], lambda order: order["id"])
    send(changes, made[6:], by_customer)
    context = changes.open()
    until_gone(changes, range(6, 9), rolls, by_customer)

    changes.judge(context)

    assert changes.manifests(context)["orders"]["compared_keys"] == {"same": 6, "others": 0}
    taken = dict.fromkeys((order["id"] for order in made[6:]), COMPACTED)
    assert (changes.found(context, LEDGER_HOP), changes.found(context, STORE_HOP)) == (taken, taken)


@pytest.mark.parametrize(
    ("record_key", "expected"),
    [(lambda order: order["id"], ("missing", "never_produced")), (by_customer, COMPACTED)],
    ids=["the key", "another key"],
)
def test_what_compaction_took_behind_an_idle_window_is_known_by_the_records_there(
    changes: ReconciledShop, record_key: RecordKey, expected: tuple[str, str]
) -> None:
    """The relay was down: the ledger has orders, and the topic has no offset of the window."""
    unsent, rolls = orders(range(3)), orders(range(30, 33))
    changes.write("outbox", unsent)
    context = changes.open()
    send(changes, rolls, record_key)
    until_gone(changes, range(3), rolls, record_key)

    changes.judge(context)

    assert changes.manifests(context)["orders"]["compared_keys"] == {"same": 0, "others": 0}
    assert changes.found(context, LEDGER_HOP) == dict.fromkeys((order["id"] for order in unsent), expected)
