"""Make losses that counts cannot see: no data at all, and a loss that a duplicate makes up for (rows 33, 34)."""

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_of
from makewhole.compute.keys import with_hash
from makewhole.model.errors import PermanentError
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_BUCKETS = 2  # those of a small window
SILENCE_TESTS = ("tests/integration/spark/test_silence.py",)


def _lag(shop: LabShop) -> Naive:
    return Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL)


def _traded(lab: Lab) -> list[Order]:
    """A day on which everything went well, before it is spoilt."""
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(20, 200)))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    return made


@scenario(
    row=33,
    name="An empty source",
    happens="The producer has stopped: nothing is sent, nothing can be lost, and every check of differences is green.",
    made="A day of orders, then a day without any: ledger and topic are silent.",
    why="Silence is not proof. A quiet day passes only where the pipeline file says that there may be one.",
    covered_by=SILENCE_TESTS,
)
def empty_source(lab: Lab) -> Outcome:
    made = _traded(lab)
    shop, count = lab.shop, len(made)
    first = Window(
        label="the day before",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
        ),
    )
    answer = (
        _lag(shop),
        Naive(answer=naive.ends(shop.bootstrap, shop.topic, remembered=count, rows=0), expected=naive.WELL),
    )
    second = Window(
        label="the silent day",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={},
            matched={LEDGER_HOP: 0, STORE_HOP: 0},
            reason="not proven: the window is empty: there is nothing of",
        ),
    )
    truth = f"Here {count} orders were sent on the first day, and none on the second."
    return Outcome(truth=truth, naive=answer, windows=(first, second))


@scenario(
    row=33,
    name="An empty store",
    happens="The store is empty: restored from nothing, or never written by a consumer that commits all the same.",
    made="A day of orders on their whole way, then `truncate` of the store's table.",
    why="Every key is looked up again before it is called missing, and every one of them is.",
    covered_by=SILENCE_TESTS,
)
def empty_store(lab: Lab) -> Outcome:
    made = _traded(lab)
    shop, count = lab.shop, len(made)
    shop.sql("truncate warehouse")
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: 0},
            found={STORE_HOP: {order["id"]: ("missing", "lost_after_topic") for order in made}},
            reason="",
        ),
    )
    truth = f"Here {count} orders were sent and loaded; then all rows are gone."
    return Outcome(truth=truth, naive=(_lag(shop),), windows=(window,))


@scenario(
    row=33,
    name="A snapshot that did not run",
    happens="One of the extracts that are compared is not there. A join with nothing finds no difference.",
    made="Some rows are lost in the store. Of the three snapshots, one is removed before the comparison.",
    why="A snapshot exists with its manifest or not at all, and without it nothing is judged. Taken again, it tells.",
    covered_by=SILENCE_TESTS,
)
def missing_snapshot(lab: Lab) -> Outcome:
    made = _traded(lab)
    shop, count = lab.shop, len(made)
    lost = lab.random.sample(made, lab.random.randint(1, 10))
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    answer = (_lag(shop),)
    context = shop.open()
    shop.snapshot(context)
    gone = lab.random.choice(["outbox", "orders", "warehouse"])
    shop.journal_sql("delete from makewhole.snapshot where point = %s", gone)
    with pytest.raises(PermanentError, match=f"no snapshot of {gone}"):
        shop.reconcile(context)
    accounting = {"span": count, "data": count}
    first = Window(
        label=f"without the snapshot of {gone}",
        judged=shop.certify_and_collect(context),
        expected=Judged(
            state=WindowState.ERROR.value,
            accounting={} if gone == "orders" else accounting,
            matched={},
            reason="the comparison did not finish",
        ),
    )
    second = Window(
        label="with it",
        judged=shop.close(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting=accounting,
            matched={LEDGER_HOP: count, STORE_HOP: count - len(lost)},
            found={STORE_HOP: {order["id"]: ("missing", "lost_after_topic") for order in lost}},
            reason="",
        ),
    )
    truth = f"Here {len(lost)} of {count} rows are lost."
    return Outcome(truth=truth, naive=answer, windows=(first, second))


@scenario(
    row=34,
    name="A loss and a duplicate that cancel each other",
    happens="One row is lost and another is there twice: the counts agree, in total and within any group they share.",
    made="Of two orders whose keys fall into the same bucket, one row is deleted and the other inserted again.",
    why="Nothing is judged by counts. Every key has its own verdict.",
    is_short=True,
)
def loss_and_duplicate(lab: Lab) -> Outcome:
    made = _traded(lab)
    shop, count = lab.shop, len(made)
    lost, doubled = _of_one_bucket(lab, made)
    shop.sql("delete from warehouse where id = %s", lost["id"])
    shop.write("warehouse", [doubled])
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count - 2},
            found={
                STORE_HOP: {
                    lost["id"]: ("missing", "lost_after_topic"),
                    doubled["id"]: ("duplicate", "written_before_committed"),
                }
            },
            reason="",
        ),
    )
    answer = (
        Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=naive.WELL),
        Naive(
            answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
            expected=naive.WELL,
        ),
        _lag(shop),
    )
    truth = f"Here {count} orders were sent; the store lacks one of them and has another one twice."
    return Outcome(truth=truth, naive=answer, windows=(window,))


def _of_one_bucket(lab: Lab, made: list[Order]) -> tuple[Order, Order]:
    """Two orders of a bucket that has at least two."""
    keys = with_hash(pl.DataFrame({"key": [order["id"] for order in made]}))
    buckets = keys.with_columns(bucket_of(_BUCKETS))["bucket"].to_list()
    shared = [bucket for bucket in sorted(set(buckets)) if buckets.count(bucket) > 1]
    bucket = lab.random.choice(shared)
    chosen = lab.random.sample([order for order, at in zip(made, buckets, strict=True) if at == bucket], 2)
    return chosen[0], chosen[1]
