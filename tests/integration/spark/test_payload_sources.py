"""Test from where original records are read, and that a plan says so."""

import json

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.compensation.sources.sources import PayloadFrom
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_a_record_of_a_window_comes_from_its_archive_also_when_kafka_deleted_it(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:], unloaded=made[4:6])
    context = shop.judge_and_ask_the_gate()
    shop.send(orders(range(100, 105), 1))
    shop.delete_records({0: 8})

    frozen = plan_window(context)

    assert [(action.hop, action.key, action.before.payload_from) for action in frozen.actions] == [
        (LEDGER_HOP, "O8", "ledger"),
        (LEDGER_HOP, "O9", "ledger"),
        (STORE_HOP, "O4", "archive"),
        (STORE_HOP, "O5", "archive"),
    ]
    records = WindowRecords(context).records("orders", [(0, 4), (0, 9)])
    assert [(record.offset, record.key, record.kept_in) for record in records] == [
        (4, b"O4", PayloadFrom.ARCHIVE),
        (9, b"O101", PayloadFrom.BROKER),
    ]


def test_the_original_of_a_producer_that_counts_in_microseconds_keeps_its_time(shop: ReconciledShop) -> None:
    """Its timestamp, read as milliseconds, lies behind the year 9999."""
    made = orders(range(3))
    shop.trade(made[:2])
    shop.change_topic(message_timestamp_after_max_ms=2**63 - 1)
    microseconds = 1_700_000_000_000_000
    shop.write("outbox", made[2:])
    client = producer(shop.bootstrap)
    client.produce(shop.topic, key="O2", value=json.dumps(made[2]), timestamp=microseconds)
    assert client.flush(30) == 0
    context = shop.judge_and_ask_the_gate()

    frozen = plan_window(context)

    assert [(action.hop, action.key) for action in frozen.actions] == [(STORE_HOP, "O2")]
    (record,) = WindowRecords(context).records("orders", [(0, 2)])
    assert record.timestamp_ms == microseconds


@pytest.mark.extended
def test_a_record_that_only_an_older_revision_of_its_window_could_read_comes_from_that_archive(
    shop: ReconciledShop,
) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.commit_group("loader", 4)
    assert shop.whole_way()[1].handed_over == 1
    shop.delete_records({0: 5})
    assert shop.whole_way()[1].state is WindowState.NOT_KNOWN
    shop.trade(orders(range(100, 103), 1))
    shop.commit_group("loader", 8)
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, STORE_HOP) == {"O4": ("missing", "committed_before_written")}

    frozen = plan_window(second)

    assert frozen.refusals == ()
    assert [(action.hop, action.key, action.before.payload_from) for action in frozen.actions] == [
        (STORE_HOP, "O4", "archive")
    ]
    compensate_window(second, lambda _: None)
    assert [record.document["id"] for record in shop.read() if record.offset > 7] == ["O4"]
    shop.write("warehouse", made[4:])
    verify_window(second, lambda *_: None)
    assert shop.certify(second).state is WindowState.CERTIFIED
