"""Test incidents of a topic's log between and inside windows: every offset is accounted for, nothing is guessed."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.errors import TransientError
from makewhole.model.gate import GateAnswer
from makewhole.model.hops import Remedy
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import PartitionRange, WindowState
from makewhole.window.context import WindowContext
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import delete_topics, make_topic
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


def happened(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return incidents.of(journal, context.window)


def kinds(shop: ReconciledShop, context: WindowContext) -> list[str]:
    return [incident.kind.value for incident in happened(shop, context)]


def places(context: WindowContext) -> list[tuple[int, int, int]]:
    return [(part.partition, part.lo, part.hi) for part in context.window.ranges["orders"]]


# Deleted before they could be read


def test_records_that_expire_before_they_are_read_leave_the_window_partial_with_their_places(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)

    report = shop.validate(context)
    closed = shop.certify(context)

    assert report.answer is GateAnswer.FAIL
    (expired,) = happened(shop, context)
    assert (expired.kind, expired.partition, expired.lo, expired.hi) == (IncidentKind.EXPIRED, 0, 0, 4)
    manifest = shop.manifests(context)["orders"]
    assert manifest["accounting_by_partition"] == {"0": manifest["accounting"]}
    assert (manifest["accounting"]["span"], manifest["accounting"]["data"], manifest["accounting"]["expired"]) == (
        10,
        6,
        4,
    )
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.certificate is None
    assert closed.reason is not None
    assert closed.reason.startswith(
        f"partial: 4 offsets of {shop.topic}/0 ([0, 4)) were deleted before they could be read. What they held is"
    )


def test_a_log_start_that_moved_past_the_last_window_leaves_no_hole_between_windows(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.trade(orders(range(100, 110), 1))
    shop.delete_records({0: 15})

    second, closed = shop.whole_way(1)

    assert places(second) == [(0, 10, 20)]
    assert shop.manifests(second)["orders"]["accounting"]["expired"] == 5
    [expired] = happened(shop, second)
    assert (expired.kind, expired.lo, expired.hi) == (IncidentKind.EXPIRED, 10, 15)
    assert closed.state is WindowState.NOT_KNOWN

    shop.trade(orders(range(200, 205), 2))
    third, closed = shop.whole_way(2)
    assert (places(third), kinds(shop, third)) == ([(0, 20, 25)], [])
    assert closed.state is WindowState.CERTIFIED


def test_gaps_of_a_partial_window_are_planned_and_repaired_all_the_same_and_it_stays_partial(
    shop: ReconciledShop,
) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made[7:8])
    context = shop.open()
    shop.delete_records({0: 4})
    shop.judge(context)
    shop.validate(context)

    frozen = plan_window(context)

    assert frozen.plan is not None
    assert frozen.plan.counts == {"redeliver": 1}
    compensate(context)
    shop.write("warehouse", made[7:8])
    verified = verify_window(context, lambda *_: None)
    assert (verified.whole, verified.gaps, verified.gate.answer) == (1, 1, GateAnswer.FAIL)
    closed = shop.certify(context)
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None and closed.reason.startswith("partial: 4 offsets of ")


def test_a_key_that_was_handed_over_is_sent_again_from_the_archive_of_the_window_that_read_it(
    shop: ReconciledShop,
) -> None:
    """Judge two windows, between which the log loses its records, and repair the second as Airflow does: it waits for a
    coordinator of transactions."""
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(10))
    shop.trade(made, unloaded=made[8:])
    shop.commit_group("loader", 8)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.delete_records({0: 10})
    shop.trade(orders(range(100, 105), 1))
    shop.commit_group("loader", 15)
    context = shop.judge_and_ask_the_gate(1)
    lost = dict.fromkeys(("O8", "O9"), ("missing", "committed_before_written"))
    assert shop.found(context, STORE_HOP) == lost

    frozen = plan_window(context)

    assert frozen.plan is not None
    assert (frozen.plan.counts, frozen.refusals) == ({"redeliver": 2}, ())
    compensate(context)
    assert [record["id"] for record in records_from(shop, 10)][-2:] == ["O8", "O9"]


def compensate(context: WindowContext) -> None:
    """As Airflow does it: a coordinator that is not ready yet is tried again."""
    for _ in range(20):
        try:
            compensate_window(context, lambda _: None)
        except TransientError as error:
            last = error
        else:
            return
    raise last


def records_from(shop: ReconciledShop, offset: int) -> list[Order]:
    """Return what the topic holds now, from an offset on."""
    return [record.document for record in shop.read() if record.offset >= offset]


# Topics that change


def test_a_topic_that_was_made_again_goes_on_from_its_first_record(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    first, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    shop.make_topic_again()
    shop.trade(orders(range(100, 105), 1))

    second, closed = shop.whole_way(1)

    (remade,) = happened(shop, second)
    old_id = first.window.ranges["orders"][0].topic_id
    assert (remade.kind, remade.partition) == (IncidentKind.TOPIC_RECREATED, None)
    assert remade.detail == {"before_it_was_read": False, "old_id": old_id, "old_ends": {"0": 10}}
    assert remade.topic_id == second.window.ranges["orders"][0].topic_id != old_id
    assert places(second) == [(0, 0, 5)]
    assert shop.counts(second, LEDGER_HOP).matched == 5
    assert closed.state is WindowState.CERTIFIED

    shop.trade(orders(range(200, 205), 2))
    third, closed = shop.whole_way(2)
    assert (places(third), kinds(shop, third)) == ([(0, 5, 10)], [])
    assert closed.state is WindowState.CERTIFIED


def test_a_topic_that_was_made_again_and_is_fed_by_nothing_is_not_known(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    shop.trade(orders(range(10)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.make_topic_again()
    shop.trade(orders(range(100, 105), 1))

    context = shop.judge_and_ask_the_gate(1)
    closed = shop.certify(context)

    assert shop.counts(context, STORE_HOP).matched == 5
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None
    assert closed.reason.startswith(f"not proven: topic {shop.topic} was deleted and made again (its id is ")


def test_a_topic_that_is_made_again_before_it_is_read_leaves_that_window_partial_and_the_next_goes_on(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.make_topic_again()
    shop.send(orders(range(100, 105), 1))
    shop.judge(context)

    assert shop.validate(context).answer is GateAnswer.FAIL
    closed = shop.certify(context)

    (gone,) = happened(shop, context)
    assert (gone.kind, gone.lo, gone.hi, gone.is_partial) == (IncidentKind.TOPIC_RECREATED, 0, 10, True)
    assert shop.manifests(context)["orders"]["accounting"]["expired"] == 10
    assert closed.state is WindowState.NOT_KNOWN
    assert closed.reason is not None and closed.reason.startswith("partial: 10 offsets of ")

    made = orders(range(100, 105), 1)
    shop.write("outbox", made)
    shop.write("warehouse", made)
    second = shop.judged(1)
    assert places(second) == [(0, 0, 5)]
    assert kinds(shop, second) == ["topic_recreated"]


def test_partitions_that_were_added_are_read_from_their_first_offset(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    admin = shop.admin
    admin.create_partitions([NewPartitions(shop.topic, 3)])[shop.topic].result(30)
    shop.partitions = 3
    for day in (1, 2):
        shop.trade(orders(range(day * 100, day * 100 + 9), day))

    second, closed = shop.whole_way(1)

    assert places(second) == [(0, 10, 13), (1, 0, 3), (2, 0, 3)]
    assert [(incident.kind, incident.partition, incident.lo, incident.hi) for incident in happened(shop, second)] == [
        (IncidentKind.PARTITIONS_ADDED, 1, 0, 3),
        (IncidentKind.PARTITIONS_ADDED, 2, 0, 3),
    ]
    assert closed.state is WindowState.CERTIFIED

    third, closed = shop.whole_way(2)
    assert places(third) == [(0, 13, 16), (1, 3, 6), (2, 3, 6)]
    assert (kinds(shop, third), closed.state) == ([], WindowState.CERTIFIED)


# Transactions


def test_an_open_transaction_ends_the_window_at_its_first_record_and_is_named(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made[8:])
    transaction = shop.begin_transaction(made[8:])

    context, closed = shop.whole_way()

    (held,) = happened(shop, context)
    assert (held.kind, held.partition, held.lo, held.hi) == (IncidentKind.OPEN_TRANSACTION, 0, 8, 10)
    assert held.detail["transactional_id"].startswith("tx-")
    assert held.detail["state"] == "Ongoing"
    assert places(context) == [(0, 0, 8)]
    assert closed.state is WindowState.CERTIFIED

    shop.end_transaction(transaction, is_committed=True)
    shop.write("warehouse", made[8:])
    again, closed = shop.whole_way()
    assert (again.window.revision, kinds(shop, again), closed.state) == (2, [], WindowState.CERTIFIED)


def test_a_transaction_that_begins_after_the_end_of_the_window_is_none_of_its_business(shop: ReconciledShop) -> None:
    shop.trade([*orders(range(10)), *orders(range(100, 105), 1)])
    transaction = shop.begin_transaction(orders(range(105, 107), 1))

    context, closed = shop.whole_way()

    assert (places(context), kinds(shop, context)) == ([(0, 0, 10)], [])
    assert closed.state is WindowState.CERTIFIED
    transaction.abort_transaction(30)


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "aborted"])
def test_a_row_that_was_loaded_before_its_transaction_ended_is_not_known_until_then(
    shop: ReconciledShop, is_committed: bool
) -> None:
    shop.describe(compensation={"limits": "{share: 1.0}", "unexpected": "quarantine"})
    made = orders(range(8))
    shop.trade(made, unsent=made[6:])
    shop.write("warehouse", [*made[6:8], *orders([99])])
    transaction = shop.begin_transaction(made[6:7])
    shop.send(made[7:8])

    context, closed = shop.whole_way()

    by_hand = ("unexpected", "not_in_source")
    not_known = ("undecidable", "in_flight")
    assert shop.found(context, STORE_HOP) == {"O6": not_known, "O7": not_known, "O99": by_hand}
    assert closed.state is WindowState.GAPS
    evidence = [shop.evidence(context, STORE_HOP, key) for key in ("O6", "O7")]
    open_at = [(entry["open"], entry["transactions"][0]["first_offset"]) for entry in evidence]
    assert open_at == [(["0:6"], 6), (["0:7"], 6)]
    plan = plan_window(context).plan
    assert plan is not None
    assert plan.counts == {Remedy.QUARANTINE: 1}

    shop.end_transaction(transaction, is_committed=is_committed)
    again, _ = shop.whole_way()
    assert shop.found(again, STORE_HOP) == {"O99": by_hand, **({} if is_committed else {"O6": by_hand})}


def test_a_row_whose_uncommitted_record_the_filter_excludes_is_unexpected(shop: ReconciledShop) -> None:
    shop.describe(hop={"where": "region = 'EU'"})
    made = orders(range(10))
    shop.trade(made[:6], unloaded=made[1:6:2])
    shop.write("outbox", made[6:])
    shop.write("warehouse", made[6:8])
    transaction = shop.begin_transaction(made[6:8])

    context, _ = shop.whole_way()

    expected = {"O6": ("undecidable", "in_flight"), "O7": ("unexpected", "not_in_source")}
    assert shop.found(context, STORE_HOP) == expected
    transaction.abort_transaction(30)


# Times that lie


def send_at(shop: ReconciledShop, numbers: list[int], times: list[datetime]) -> None:
    client = Producer({"bootstrap.servers": shop.bootstrap, "linger.ms": 5})
    for number, time in zip(numbers, times, strict=True):
        order = {**orders([number])[0], "at": time.isoformat()}
        client.produce(shop.topic, partition=0, value=json.dumps(order), timestamp=max(0, int(time.timestamp() * 1000)))
    assert client.flush(30) == 0


HOUR = timedelta(hours=1)
NOON = BORN + 12 * HOUR
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LIES = {
    "of 1970 among the true ones": [NOON, EPOCH, NOON, NOON + DAY, EPOCH, NOON + DAY, NOON + 2 * DAY],
    "an hour ahead at the end of the day": [NOON, BORN + DAY + HOUR, NOON, NOON, NOON + DAY, NOON + DAY, NOON],
    "descending": [NOON + 2 * DAY, NOON + 2 * DAY, NOON + DAY, NOON + DAY, NOON, NOON, EPOCH],
    "all in 1970": [EPOCH] * 7,
    "of a day that is far ahead": [NOON, datetime.now(UTC) + 30 * DAY, NOON, NOON + DAY, NOON, NOON + 2 * DAY, NOON],
}


@pytest.mark.parametrize("times", with_every_change(LIES.values(), first=2), ids=LIES.keys())
def test_windows_tile_whatever_the_times_of_records_say(shop: ReconciledShop, times: list[datetime]) -> None:
    if any(time > datetime.now(UTC) for time in times):
        set_topic(shop, "message.timestamp.after.max.ms", str(2**62))
    send_at(shop, list(range(7)), times)

    ranges = [part for day in range(3) for part in _judged(shop, day).window.ranges["orders"]]
    send_at(shop, [7], [datetime.now(UTC)])
    last = shop.ask(end=datetime.now(UTC)).window.ranges["orders"]

    _assert_tiled([*ranges, *last], 8)


def test_a_record_of_the_future_does_not_end_every_window_at_its_place(shop: ReconciledShop) -> None:
    set_topic(shop, "message.timestamp.after.max.ms", str(2**62))
    send_at(shop, [0, 1, 2, 3], [NOON, datetime(2262, 1, 1, tzinfo=UTC), NOON, NOON + DAY])

    assert [places(_judged(shop, day)) for day in (0, 1)] == [[(0, 0, 3)], [(0, 3, 4)]]


def test_a_log_of_append_times_is_divided_by_the_brokers_clock(shop: ReconciledShop) -> None:
    set_topic(shop, "message.timestamp.type", "LogAppendTime")
    send_at(shop, list(range(5)), [EPOCH, NOON, NOON + DAY, NOON + 2 * DAY, EPOCH])

    assert places(_judged(shop, 0)) == [(0, 0, 0)]
    assert [(part.lo, part.hi) for part in shop.ask(end=datetime.now(UTC)).window.ranges["orders"]] == [(0, 5)]


def set_topic(shop: ReconciledShop, name: str, value: str) -> None:
    """Have another topic, with this setting, in place of the shop's."""
    delete_topics(shop.admin, [shop.topic])
    shop.topic = f"{shop.topic}-set"
    make_topic(shop.admin, shop.topic, settings={name: value})
    shop.describe()


def _judged(shop: ReconciledShop, day: int) -> WindowContext:
    """Compared is all that the next window asks for."""
    context = shop.open(day)
    shop.judge(context)
    return context


def _assert_tiled(ranges: list[PartitionRange], end: int) -> None:
    position = 0
    for part in ranges:
        assert part.lo == position
        position = part.hi
    assert position == end
