"""Pause a leader while its log is read (row 20)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, TopicPartition

from makewhole.model.errors import TransientError
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_kafka
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.cluster import BROKERS
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.world.environment import set_connection
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_SILENCE_SECONDS = 1.5
_PADDING_BYTES = 10_000
_PAGE_BYTES = 8 << 20


def _large_day(lab: Lab, copies: int) -> list[Order]:
    """Orders on their whole way, too many for one page of a fetch, and a topic in so many copies."""
    shop = lab.shop
    shop.make_tables()
    shop.describe()
    lab.cluster.create_topic(shop.topic, replicas=[lab.random.sample(BROKERS, copies)])
    made = orders(range((_PAGE_BYTES * lab.random.randint(20, 30) // 10) // _PADDING_BYTES))
    for table in ("outbox", "warehouse"):
        shop.write(table, made)
    shop.send([{**order, "padding": "x" * _PADDING_BYTES} for order in made])
    set_connection(lab.patch, "log", connection_kafka(lab.cluster.proxied_bootstrap))
    return made


def _scan_until_silence(lab: Lab, count: int) -> Naive:
    """A script that takes silence for the end; the leader is paused while it reads."""
    cluster, topic = lab.cluster, lab.shop.topic
    settings = {"group.id": "script", "fetch.message.max.bytes": 50_000, "queued.max.messages.kbytes": 100}
    client = Consumer({"bootstrap.servers": cluster.bootstrap, "enable.auto.commit": False, "log_level": 0, **settings})
    client.assign([TopicPartition(topic, 0, 0)])
    there = 0
    while there < 10:
        there += client.poll(_SILENCE_SECONDS) is not None
    leader = cluster.leader(topic)
    cluster.pause(leader)
    while client.poll(_SILENCE_SECONDS) is not None:
        there += 1
    cluster.resume(leader)
    client.close()
    cluster.wait_for_leader(topic)
    return Naive(
        answer=NaiveAnswer(
            check="records until nothing comes for a while, against rows in the ledger",
            text="fewer records than rows" if there < count else f"{there} records, {count} rows",
            conclusion="some lost" if there < count else naive.WELL,
        ),
        expected="some lost",
    )


def _pause_in_mid_scan(lab: Lab, held: Rule, *, is_resumed: bool) -> None:
    """The leader freezes before the second page; resumed when the reader has given up on its request and asks again."""
    held.wait_until_hit()
    leader = lab.cluster.leader(lab.shop.topic)
    lab.cluster.pause(leader)
    asked = lab.cluster.proxy.add(Rule(api=Api.METADATA, fault=Fault.NOTE))
    held.release()
    if is_resumed:
        asked.wait_until_hit()
        lab.cluster.resume(leader)


def _snapshot(lab: Lab, context: WindowContext, *, is_resumed: bool) -> None:
    held = lab.cluster.proxy.add(Rule(api=Api.FETCH, fault=Fault.HOLD, first=2))
    with ThreadPoolExecutor() as aside:
        paused = aside.submit(_pause_in_mid_scan, lab, held, is_resumed=is_resumed)
        try:
            lab.shop.snapshot(context)
        finally:
            paused.result()


def _whole(count: int) -> Judged:
    return Judged(
        state=WindowState.CERTIFIED.value,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: count},
    )


@scenario(
    row=20,
    name="The leader pauses in the middle of a scan",
    happens="The leader stops answering for a while (a long garbage collection, a frozen disk) while its log is read.",
    made="The leader of a topic without other copies is stopped (SIGSTOP) between two pages, and goes on later.",
    why="A read ends at the offset that was frozen when the window was opened, or not at all: it is tried again.",
)
def leader_pauses(lab: Lab) -> Outcome:
    count = len(_large_day(lab, copies=1))
    answer = _scan_until_silence(lab, count)
    context = lab.shop.open()
    _snapshot(lab, context, is_resumed=True)
    window = Window(judged=lab.shop.close(context), expected=_whole(count))
    return Outcome(truth=f"Here all {count} orders are there.", naive=(answer,), windows=(window,))


@scenario(
    row=20,
    name="The leader dies in the middle of a scan",
    happens="The leader stops for so long that another broker takes its place.",
    made="The leader of a topic in three copies is stopped (SIGSTOP) between two pages, and stays so.",
    why="The read goes on at the new leader, at the offset where it stood.",
)
def leader_is_replaced(lab: Lab) -> Outcome:
    count = len(_large_day(lab, copies=3))
    answer = _scan_until_silence(lab, count)
    context = lab.shop.open()
    _snapshot(lab, context, is_resumed=False)
    window = Window(judged=lab.shop.close(context), expected=_whole(count))
    return Outcome(truth=f"Here all {count} orders are there.", naive=(answer,), windows=(window,))


@scenario(
    row=20,
    name="The leader stays away",
    happens="The leader stops answering in the middle of a scan, no other broker has its log, and patience ends.",
    made="The leader of a topic without other copies is stopped (SIGSTOP) between two pages until the read has failed.",
    why=(
        "The read fails as a whole, and may be tried again: nothing of it is kept, nothing is judged. Tried again when "
        "the leader is back, it tells."
    ),
)
def leader_stays_away(lab: Lab) -> Outcome:
    count = len(_large_day(lab, copies=1))
    answer = _scan_until_silence(lab, count)
    context = lab.shop.open()
    with pytest.raises(TransientError):
        _snapshot(lab, context, is_resumed=False)
    first = Window(
        label="while it is away",
        judged=lab.shop.certify_and_collect(context),
        expected=Judged(
            state=WindowState.ERROR.value, accounting={}, matched={}, reason="the comparison did not finish"
        ),
    )
    lab.cluster.heal()
    second = Window(label="when it is back", judged=lab.shop.close(context), expected=_whole(count))
    return Outcome(truth=f"Here all {count} orders are there.", naive=(answer,), windows=(first, second))
