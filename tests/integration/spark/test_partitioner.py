"""Test where `produce` writes: where the topic's own producers would, or nowhere."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow.parquet as pq
import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.freezing.freeze import FreezeResult
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.kafka.partitioner import partition_of
from makewhole.model.hops import Remedy
from makewhole.model.plan import PLAN_HEADER
from makewhole.model.points import Partitioner
from makewhole.window.context import WindowContext
from tests.world.consumer import read_settled
from tests.world.java_clients import JavaClients
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP
from tests.world.topics import add_partitions, producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PARTITIONS = 4
CRC32 = "consistent_random"


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClients]:
    with JavaClients() as clients:
        yield clients


@pytest.fixture
def wide(shop: ReconciledShop) -> ReconciledShop:
    """Return the shop, whose topic has several partitions."""
    _set_partitions(shop, PARTITIONS)
    return shop


def test_produce_writes_into_the_partition_into_which_javas_producer_puts_the_key(
    wide: ReconciledShop, java: JavaClients
) -> None:
    made = orders(range(40))
    lost = made[25:]
    wide.write("outbox", made)
    _send_by_java(wide, java, wide.topic, made[:25])
    wide.write("warehouse", made[:25])

    context, frozen = _planned(wide)
    assert [action.remedy for action in frozen.actions] == [Remedy.PRODUCE] * len(lost)
    compensate_window(context, lambda _: None)

    beside = wide.add_topic()
    add_partitions(wide.admin, beside, PARTITIONS)
    _send_by_java(wide, java, beside, lost)
    expected = _places(wide, beside)
    assert set(expected) == {order["id"] for order in lost}
    assert len(set(expected.values())) == PARTITIONS
    assert {key: _places(wide)[key] for key in expected} == expected
    assert _frozen_places(frozen) == expected
    assert _refused(wide, context) == {}


def test_nothing_is_produced_where_a_known_key_stands_elsewhere_until_the_point_names_its_partitioner(
    wide: ReconciledShop,
) -> None:
    made = orders(range(40))
    wide.write("outbox", made)
    _send(wide, made[:25], CRC32)

    context, frozen = _planned(wide)
    expected = {order["id"]: partition_of(Partitioner.CRC32, order["id"].encode(), PARTITIONS) for order in made}
    misfits = sum(
        partition_of(Partitioner.MURMUR2, order["id"].encode(), PARTITIONS) != expected[order["id"]]
        for order in made[:25]
    )
    reason = (
        f"unfit: {misfits} of the last 25 keys in {wide.topic} do not stand where partitioner murmur2 puts them among "
        "4 partitions; crc32 puts all of them there: write 'partitioner: crc32' on point orders"
    )
    assert frozen.plan is None
    assert _refused(wide, context) == {order["id"]: reason for order in made[25:]}
    assert len(_places(wide)) == 25

    wide.describe(partitioner="crc32")
    context, frozen = _planned(wide)
    compensate_window(context, lambda _: None)
    assert _places(wide) == expected
    assert len(frozen.actions) == 15


def test_a_plan_is_refused_where_partitions_were_added_after_it_was_frozen(wide: ReconciledShop) -> None:
    made = orders(range(12))
    wide.write("outbox", made)
    _send(wide, made[:8], "murmur2_random")
    context, frozen = _planned(wide)
    assert len(frozen.actions) == 4
    _set_partitions(wide, PARTITIONS + 1)

    compensate_window(context, lambda _: None)

    assert set(_places(wide)) == {order["id"] for order in made[:8]}
    assert frozen.plan is not None
    reasons = wide.journal_sql("select outcome, outcome_reason from makewhole.action where plan = %s", frozen.plan.id)
    refused = (
        "refused",
        "stale: the topic has 5 partitions now and had 4 when the plan was frozen: the key may belong into another "
        "one; run the window again",
    )
    assert reasons == [refused] * 4


def test_partitions_that_were_added_since_the_window_was_read_take_their_share(wide: ReconciledShop) -> None:
    """The known keys stand where four partitions put them; producers know of the fifth by now."""
    made = orders(range(40))
    wide.write("outbox", made)
    _send(wide, made[:20], "murmur2_random")
    context = wide.judge_and_ask_the_gate()
    _set_partitions(wide, PARTITIONS + 1)

    frozen = plan_window(context)

    keys = [order["id"] for order in made[20:]]
    assert _frozen_places(frozen) == {key: partition_of(Partitioner.MURMUR2, key.encode(), 5) for key in keys}


def test_keys_are_known_from_the_last_offsets_of_the_newest_window_that_has_any(wide: ReconciledShop) -> None:
    """Replays and records without a key show nothing."""
    first = orders(range(150))
    wide.write("outbox", first)
    client = producer(wide.bootstrap, linger_ms=20)
    for number, order in enumerate(first):
        _produce(client, wide.topic, order, partition=0 if number < 130 else 3)
    assert client.flush(30) == 0
    context, _ = wide.whole_way()
    _say_nothing_of_keys(wide, orders(range(200, 203), 1))
    later = wide.judged(1)

    with connect(wide.journal) as journal:
        judged = windows.newest_judged(journal, "shop")
    expected = {order["id"]: 0 if number < 130 else 3 for number, order in enumerate(first) if number >= 30}
    for asked in (later, context):  # the newest window is looked at first, whatever window is planned for
        known = WindowRecords(asked, judged).known_keys("orders")
        assert known is not None
        assert known.partitions == PARTITIONS
        assert {key.decode(): partition for partition, key in known.places} == expected


def test_where_no_producers_key_is_known_the_points_partitioner_is_believed(wide: ReconciledShop) -> None:
    made = orders(range(10))
    wide.write("outbox", made)
    _say_nothing_of_keys(wide, made[:3])
    _, frozen = _planned(wide)
    keys = [order["id"] for order in made[3:]]
    assert _frozen_places(frozen) == {key: partition_of(Partitioner.MURMUR2, key.encode(), PARTITIONS) for key in keys}


def _planned(shop: ReconciledShop) -> tuple[WindowContext, FreezeResult]:
    context = shop.judge_and_ask_the_gate()
    return context, plan_window(context)


def _set_partitions(shop: ReconciledShop, count: int) -> None:
    add_partitions(shop.admin, shop.topic, count)
    shop.partitions = count


def _send(shop: ReconciledShop, made: Sequence[Order], partitioner: str) -> None:
    """Send orders as they are sent by a librdkafka producer, and load them."""
    shop.write("warehouse", made)
    client = producer(shop.bootstrap, partitioner=partitioner)
    for order in made:
        _produce(client, shop.topic, order)
    assert client.flush(30) == 0


def _produce(client: object, topic: str, order: Order, **fields: object) -> None:
    fields = {"key": order["id"], "value": json.dumps(order), "timestamp": milliseconds(order["at"])} | fields
    client.produce(topic, **fields)  # type: ignore[attr-defined]


def _say_nothing_of_keys(shop: ReconciledShop, made: list[Order]) -> None:
    """Send one record without a key, the others with the header of a replay, all of them into partition 1, and load
    them."""
    shop.write("warehouse", made)
    client = producer(shop.bootstrap)
    _produce(client, shop.topic, made[0], partition=1, key=None)
    for order in made[1:]:
        _produce(client, shop.topic, order, partition=1, headers=[(PLAN_HEADER, b"forged")])
    assert client.flush(30) == 0


def _send_by_java(shop: ReconciledShop, java: JavaClients, topic: str, made: Iterable[Order]) -> None:
    with java.producer(shop.bootstrap) as client:
        for order in made:
            client.send(
                topic,
                json.dumps(order).encode(),
                key=order["id"].encode(),
                partition=None,
                timestamp_ms=milliseconds(order["at"]),
            )
        client.flush()


def _places(shop: ReconciledShop, topic: str | None = None) -> Mapping[str, int]:
    """Return the partition of each key; each is in the topic once."""
    records = read_settled(shop.bootstrap, topic or shop.topic)
    assert len({record.key for record in records}) == len(records)
    return {record.key_text: record.partition for record in records}


def _frozen_places(frozen: FreezeResult) -> Mapping[str, int]:
    """Return the partition of each key in the payload file, which the plan's hash covers."""
    assert frozen.plan is not None
    assert frozen.plan.payload_uri is not None
    rows = pq.read_table(frozen.plan.payload_uri, columns=["key", "partition"]).to_pylist()
    return {row["key"].decode(): row["partition"] for row in rows}


def _refused(shop: ReconciledShop, context: WindowContext) -> dict[str, str]:
    rows = shop.journal_sql(
        "select key, outcome_reason from makewhole.finding where pipeline = 'shop' and number = %s and revision = %s "
        "and hop = %s and outcome = 'refused'",
        context.window.number,
        context.window.revision,
        LEDGER_HOP,
    )
    return dict(rows)
