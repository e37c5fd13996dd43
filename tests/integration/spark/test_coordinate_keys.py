"""Test whole windows by the position of records, by their sequence, and by what their producer stamped on them."""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from makewhole.config.connections import from_environment
from makewhole.journal.database import connect
from makewhole.journey.trace import business_key, trace
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import describe_topic
from makewhole.lake.storage import Storage
from makewhole.model.connection import kafka_of
from makewhole.model.errors import RefusedError
from makewhole.model.window import PartitionRange, WindowState
from makewhole.window.context import as_last_read, connections_of
from tests.integration.spark.test_survivors import repair
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

REPAIRED: Settings = {"limits": "{share: 1.0}", "missing": "upsert", "mismatched": "upsert", "duplicate": "quarantine",
                      "unexpected": "quarantine"}  # fmt: skip

REPORTED: Settings = {"compensation": "{missing: report}"}


def describe(shop: ReconciledShop, key: str = "[part, pos]", topic_key: str = "position", **more: Any) -> None:
    shop.describe(has_ledger=False, key=key, topic_key=topic_key, compensation=REPAIRED, **more)


def with_positions(shop: ReconciledShop) -> list[Order]:
    """Return the orders of the topic with the positions of their records, as a loader writes them."""
    return [
        json.loads(record.value or b"{}") | {"part": record.partition, "pos": record.offset} for record in shop.read()
    ]


def key_of(order: Order, *columns: str) -> str:
    return json.dumps([str(order[column]) for column in columns or ("part", "pos")], separators=(",", ":"))


@pytest.fixture
def by_position(shop: ReconciledShop) -> ReconciledShop:
    shop.sql("alter table warehouse add part smallint, add pos text")
    describe(shop)
    return shop


def test_rows_are_held_to_the_records_at_their_positions(by_position: ReconciledShop) -> None:
    """Ids repeat and say nothing: of two records with one id each has a row of its own."""
    shop = by_position
    shop.send([*orders(range(12)), *orders(range(3))])
    rows = with_positions(shop)
    hole, changed, twice, stray = rows[2], rows[5], rows[7], rows[13] | {"pos": 99}
    shop.write("warehouse", [row for row in rows if row not in (hole, changed)])
    shop.write("warehouse", [changed | {"amount": "999.00"}, twice, stray])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {
        key_of(hole): ("missing", "lost_after_topic"),
        key_of(changed): ("mismatched", "value_differs"),
        key_of(twice): ("duplicate", "written_before_committed"),
        key_of(stray): ("unexpected", "not_in_source"),
    }
    with connect(shop.journal) as journal:
        pipeline = as_last_read(journal, shop.pipeline)
        key = business_key(pipeline, '["0", "07"]')
        journey = trace(journal, pipeline, Storage.from_environment(), from_environment, key)
    assert [len(stop.copies) for stop in journey.stops] == [1, 2]
    assert repair(shop, context).state is WindowState.CERTIFIED
    kept = shop.sql("select part::int, pos::int, amount::text from warehouse order by 2")
    assert kept == [(row["part"], row["pos"], row["amount"]) for row in rows]


def test_the_next_day_finds_what_came_late_and_what_was_written_twice(by_position: ReconciledShop) -> None:
    shop = by_position
    shop.send(orders(range(6)))
    first = with_positions(shop)
    shop.write("warehouse", first)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.send(orders(range(100, 106), 1))
    day = with_positions(shop)[6:]
    shop.write("warehouse", [*day, first[0] | {"at": day[0]["at"]}])

    context = shop.judge_and_ask_the_gate(1)

    assert shop.found(context, STORE_HOP) == {key_of(first[0]): ("duplicate", "written_before_committed")}


def test_a_row_of_an_aborted_record_is_unexpected_and_a_record_without_a_value_is_placed(
    by_position: ReconciledShop,
) -> None:
    shop = by_position
    shop.send(orders(range(3)))
    shop.end_transaction(shop.begin_transaction(orders([3])), is_committed=False)
    shop.send_raw(b"no json")
    shop.send(orders([4]))
    rows = with_positions_of(shop, [0, 1, 2, 6])
    aborted, unread = orders([3])[0] | {"part": 0, "pos": 3}, orders([5])[0] | {"part": 0, "pos": 5}
    shop.write("warehouse", [*rows, aborted, unread])

    context = shop.judge_and_ask_the_gate()

    assert shop.accounting(context)["undecodable"] == 1
    assert shop.found(context, STORE_HOP) == {
        key_of(aborted): ("unexpected", "read_uncommitted"),
        key_of(unread): ("undecidable", "unreadable_record"),
    }


def with_positions_of(shop: ReconciledShop, offsets: Sequence[int]) -> list[Order]:
    by_offset = {record.offset: record for record in shop.read()}
    return [json.loads(by_offset[at].value or b"{}") | {"part": 0, "pos": at} for at in offsets]


def test_a_ledger_of_acknowledged_positions_says_what_the_log_lacks(shop: ReconciledShop) -> None:
    """What a producer writes down of the answers that it got is held to the log, and nothing is produced for it."""
    shop.sql("alter table warehouse add part int, add pos bigint; alter table outbox add part int, add pos bigint")
    shop.describe(key="[part, pos]", topic_key="position", compensation=REPAIRED, ledger_hop=REPORTED)
    shop.send(orders(range(5)))
    rows = with_positions(shop)
    shop.write("outbox", [*rows, orders([7])[0] | {"part": 0, "pos": 5}])
    shop.write("warehouse", rows)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {'["0","5"]': ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {}


def test_a_topic_that_is_made_again_gives_its_positions_to_other_records(by_position: ReconciledShop) -> None:
    shop = by_position
    shop.send(orders(range(4)))
    shop.write("warehouse", with_positions(shop))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.make_topic_again()
    shop.send(orders(range(100, 104), 1))

    with pytest.raises(RefusedError) as refused:
        shop.open(1)

    assert f"topic {shop.topic} was deleted and made again" in str(refused.value)
    assert "may be held to the ones that have their offsets now. Name a business key at the points" in str(
        refused.value
    )


def test_a_compacted_topic_has_no_lasting_positions(by_position: ReconciledShop) -> None:
    shop = by_position
    shop.change_topic(cleanup_policy="compact,delete")
    shop.send(orders(range(4)))
    with pytest.raises(RefusedError) as refused:
        shop.open()
    assert str(refused.value) == (
        f"{shop.topic} (point orders) is compacted (its cleanup.policy is compact,delete), and the key of the point is "
        "a coordinate of its records: of one that compaction took away no record says that its row belongs there. Name "
        "a business key at the points"
    )


def test_rows_are_held_to_the_records_that_a_producer_numbered_so(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add pid bigint, add epoch int, add part int, add seq bigint")
    describe(shop, "[pid, epoch, part, seq]", "sequence")
    shop.send(orders(range(8)), settings={"enable.idempotence": True})
    shop.send(orders(range(20, 24)), settings={"enable.idempotence": True})
    rows = numbered(shop)
    assert [row["seq"] for row in rows] == [*range(8), *range(4)]
    shop.write("warehouse", [*rows[1:], rows[3]])

    context = shop.judge_and_ask_the_gate()

    names = ("pid", "epoch", "part", "seq")
    assert shop.found(context, STORE_HOP) == {
        key_of(rows[0], *names): ("missing", "lost_after_topic"),
        key_of(rows[3], *names): ("duplicate", "written_before_committed"),
    }
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert shop.sql("select count(*), min(seq) from warehouse where pid = %s", rows[0]["pid"]) == [(8, 0)]


def numbered(shop: ReconciledShop) -> list[Order]:
    """Return the orders of the topic with what numbers their records."""
    connection = kafka_of(connections_of(shop.pipeline)["log"])
    with closing(BrokerLog(connection)) as broker:
        state = describe_topic(connection, shop.topic)
        wanted = PartitionRange(topic=shop.topic, topic_id=state.topic_id, partition=0, lo=0, hi=12)
        rows = [row for batch in read_range(broker, wanted).batches() for row in batch.to_pylist()]
    return [
        json.loads(row["value"])
        | {"pid": row["producer_id"], "epoch": row["producer_epoch"], "part": 0, "seq": row["sequence"]}
        for row in rows
    ]


def test_a_record_that_no_producer_numbered_has_no_sequence(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add pid bigint, add epoch int, add part int, add seq bigint")
    describe(shop, "[pid, epoch, part, seq]", "sequence")
    shop.send(orders(range(3)))

    context = shop.judge_and_ask_the_gate()

    assert shop.accounting(context)["undecodable"] == 3
    paths = shop.manifests(context)["orders"]["undecodable_files"]
    rows = context.storage.read_parquet(paths, ["place", "reason", "business_key"])
    assert rows is not None
    assert set(rows["reason"]) == {"record has no sequence: its producer is not idempotent"}
    assert rows["business_key"].null_count() == 0


def test_records_are_known_by_what_their_producer_stamped_on_them(shop: ReconciledShop) -> None:
    """The id of the producer and its own count, in two headers: what it sends again has the same pair."""
    shop.sql("alter table warehouse add producer text, add number_sent int")
    describe(shop, "[producer, number_sent]", "['header:producer', 'header:sequence']")
    made = orders(range(8))
    for number, order in enumerate(made):
        shop.send([order], headers={"producer": "till-1", "sequence": f"{number:04d}"})
    shop.send(made[7:], headers={"producer": "till-1", "sequence": "7"})
    stamped = [order | {"producer": "till-1", "number_sent": number} for number, order in enumerate(made)]
    shop.write("warehouse", [*stamped[1:], stamped[4]])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {
        '["till-1","0"]': ("missing", "lost_after_topic"),
        '["till-1","4"]': ("duplicate", "written_before_committed"),
    }
    assert repair(shop, context).state is WindowState.CERTIFIED
