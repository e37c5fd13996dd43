"""Test replays and their copies in later windows, originals that come after a replay, and arrivals before it."""

import pytest
from confluent_kafka import Producer

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.hops import Remedy
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REDELIVER = {"compensation": "{missing: redeliver}"}
PRODUCE = {"compensation": "{missing: produce}"}
LATE = ("duplicate", "late_original")


def test_a_copy_of_a_replay_in_a_later_window_is_a_duplicate(shop: ReconciledShop) -> None:
    """A dead-letter redrive or a stream processor repeats the record with its headers, each time in another window."""
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    _repaired(shop, 0)
    shop.write("warehouse", made[4:6])
    replays = [record for record in shop.read() if dict(record.headers).get("makewhole-plan") is not None]
    assert [record.key_text for record in replays] == ["O4", "O5"]
    shop.trade(orders(range(100, 105), 1))
    second, closed = shop.whole_way(1)
    assert (shop.found(second, LEDGER_HOP), closed.state) == ({}, WindowState.CERTIFIED)

    client = Producer({"bootstrap.servers": shop.bootstrap})
    for record in replays[:1]:
        client.produce(
            shop.topic,
            record.value,
            record.key,
            partition=0,
            headers=list(record.headers),
            timestamp=record.timestamp_ms,
        )
    client.flush(30)
    shop.trade(orders(range(200, 205), 2))
    third, closed = shop.whole_way(2)

    assert shop.found(third, LEDGER_HOP) == {"O4": ("duplicate", "retry_without_idempotence")}
    assert closed.state is WindowState.GAPS


def test_what_another_pipeline_sent_into_a_topic_that_both_read_is_a_replay(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:6])
    _repaired(shop, 0)
    shop.write("warehouse", made[4:6])
    shop.name = "reports"
    shop.describe()

    context, closed = shop.whole_way(0)

    assert context.pipeline.name == "reports"
    assert (shop.found(context, LEDGER_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_an_original_that_comes_after_the_produced_record_is_a_finding(shop: ReconciledShop) -> None:
    """Whichever window it falls into; the store holds the key once, so that it is contained."""
    shop.describe(ledger_hop=PRODUCE, hop=REDELIVER)
    made = orders(range(10))
    shop.trade(made, unsent=made[4:6])
    _repaired(shop, 0)
    shop.send(made[4:5])  # in the window of the replay
    shop.write("warehouse", made[4:6])
    shop.trade(orders(range(100, 105), 1))
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, LEDGER_HOP) == {"O4": LATE}
    assert shop.evidence(second, LEDGER_HOP, "O4")["target_copies"] == 2
    plan_window(second)
    verify_window(second, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(second) == {"O4": "contained"}
    assert shop.certify(second).state is WindowState.CERTIFIED

    shop.send(made[5:6])  # in a later one
    shop.trade(orders(range(200, 205), 2))
    third = shop.judged(2)
    assert shop.found(third, LEDGER_HOP) == {"O5": LATE}


def test_a_consumer_that_loads_original_and_replay_has_a_late_original(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made[4:5])
    _repaired(shop, 0)
    shop.write("warehouse", [made[4], made[4]])
    shop.trade(orders(range(100, 105), 1))
    again = shop.judge_and_ask_the_gate(0)

    assert shop.found(again, STORE_HOP) == {"O4": LATE}
    verify_window(again, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(again) == {"O4": "open"}
    frozen = plan_window(again)
    assert [(action.remedy, action.key) for action in frozen.actions] == [(Remedy.QUARANTINE, "O4")]
    compensate_window(again, lambda _: None)
    verify_window(again, lambda *_: None, patience_seconds=0)
    assert shop.outcomes(again) == {"O4": "repaired"}
    assert shop.sql("select count(*) from warehouse where id = 'O4'") == [(1,)]
    closed = shop.certify(again)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)


def test_what_arrives_between_verdict_and_run_is_not_sent_and_the_window_is_whole(shop: ReconciledShop) -> None:
    """The producer catches up with one key, the consumer with another, while a person approves."""
    shop.describe(ledger_hop=PRODUCE, hop=REDELIVER)
    made = orders(range(10))
    shop.trade(made, unsent=made[2:3], unloaded=made[4:5])
    context = shop.judge_and_ask_the_gate(0)
    frozen = plan_window(context)
    assert frozen.plan is not None
    assert sorted(action.remedy for action in frozen.actions) == ["produce", "redeliver"]
    before = len(shop.read())
    shop.send(made[2:3])
    shop.write("warehouse", [made[2], made[4]])
    compensate_window(context, lambda _: None)

    assert len(shop.read()) == before + 1  # the producer's own
    reasons: dict[str, str] = dict(shop.journal_sql("select key, outcome_reason from makewhole.action order by key"))
    assert reasons == {
        "O2": f"arrived: a record of the key came to orders at 0:{before} after the window was judged",
        "O4": "arrived: warehouse holds the key now",
    }
    verified = verify_window(context, lambda *_: None, patience_seconds=0)
    assert (verified.whole, verified.gaps) == (2, 2)
    assert shop.certify(context).state is WindowState.CERTIFIED


def _repaired(shop: ReconciledShop, day: int) -> WindowContext:
    """Plan and send what a window lacks."""
    context = shop.judge_and_ask_the_gate(day)
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    return context
