"""Test several stores on one topic, and several topics in a row: one snapshot serves all, each loss has its hop."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from makewhole.cli import explain
from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.page import Isolation, LogPage
from makewhole.model.window import PartitionRange, WindowState
from tests.world.orders import COLUMNS, orders
from tests.world.pipeline_file import ledger, pipeline_file, store, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

LOST, NEVER_SENT = ("missing", "lost_after_topic"), ("missing", "never_produced")
A_SCREEN = 30
STORES = ("stock", "mail")


@contextmanager
def fetches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[tuple[str, int]]]:
    """Yield how often each offset of each topic was asked for as the next to read."""
    asked: Counter[tuple[str, int]] = Counter()
    fetch = BrokerLog.fetch

    def counted(log: BrokerLog, wanted: PartitionRange, offset: int, isolation: Isolation) -> LogPage:
        asked[wanted.topic, offset] += 1
        return fetch(log, wanted, offset, isolation)

    with monkeypatch.context() as patched:
        patched.setattr(BrokerLog, "fetch", counted)
        yield asked


def three_stores(shop: ReconciledShop, **more: Any) -> None:
    """Have the topic feed two more tables."""
    for name in STORES:
        shop.sql(f"create table if not exists {name} (like warehouse)")
    shop.describe(
        more_points={name: store("db", name) for name in STORES},
        more_hops=[{"from": "orders", "to": name} for name in STORES],
        is_observing=True,
        **more,
    )


def in_a_row(shop: ReconciledShop, remedies: str = "{missing: report}") -> tuple[str, str, str]:
    """Have orders go through three topics before they reach the store; return their names."""
    topics = (shop.topic, shop.add_topic(), shop.add_topic())
    named = {name: topic("log", of) for name, of in zip(("orders", "priced", "shipped"), topics, strict=True)}
    points = {"outbox": ledger("db", "outbox"), **named, "warehouse": store("db", "warehouse")}
    hops = [{"from": source, "to": target} for source, target in pairwise(points)]
    hops[-1]["compensation"] = remedies
    settings = {
        "start": "earliest",
        "settle": "0s",
        "compare": '{amount: "decimal(8,2)"}',
        "compensation": "{limits: {share: 1.0}}",
    }
    text = pipeline_file("shop", points=points, hops=hops, settings=settings, columns=COLUMNS, is_observing=True)
    shop.file.write_text(text)
    return topics


def lose_one_more_each(shop: ReconciledShop, topics: tuple[str, ...], count: int) -> None:
    """Send orders along the row: the first topic lacks O0, the next O1, too, and so on; the store lacks O3, too."""
    made = orders(range(count))
    shop.write("outbox", made)
    for at, name in enumerate(topics):
        shop.topic = name
        shop.send(made[at + 1 :])
    shop.topic = topics[0]
    shop.write("warehouse", made[len(topics) + 1 :])


def explained(key: str, *options: str) -> str:
    """Return what `makewhole explain` prints of a key on a terminal of a hundred columns."""
    with pytest.MonkeyPatch.context() as patched:
        # A console keeps the width that it had when its module was loaded.
        patched.setattr(explain, "_console", Console(width=100, highlight=False, soft_wrap=True, markup=False))
        result = CliRunner().invoke(app, ["explain", "shop", key, *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def fetched_for(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, describe: Callable[[ReconciledShop], None]
) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """Judge a window and what came behind it by another file; return what snapshot and reconcile asked the brokers."""
    describe(shop)
    context = shop.open()
    with fetches(monkeypatch) as of_snapshot:
        shop.snapshot(context)
    with fetches(monkeypatch) as of_reconcile:
        shop.reconcile(context)
    return of_snapshot, of_reconcile


@pytest.mark.in_process
def test_one_snapshot_of_the_topic_serves_every_store(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the window lies a record that reconciling has to read for a row that each store has too early."""
    made, later = orders(range(20)), orders(range(30, 40), 1)
    shop.trade(made, unloaded=made[1:2])
    shop.send(later)
    three_stores(shop)
    for name in STORES:
        shop.write(name, made[2:])
    for name in ("warehouse", *STORES):
        shop.write(name, [{**later[0], "at": made[0]["at"]}])  # loaded before the window's end, as its clock has it

    single = fetched_for(shop, monkeypatch, lambda shop: shop.describe(is_observing=True))
    three = fetched_for(shop, monkeypatch, three_stores)

    assert three == single
    assert set(three[0].values()) == {1}


def test_each_store_lacks_what_it_lost_and_nothing_of_the_others(shop: ReconciledShop) -> None:
    three_stores(shop)
    made = orders(range(20))
    shop.trade(made, unsent=made[:1], unloaded=made[1:2])
    shop.write("stock", [*made[1:2], *made[3:], {**made[9], "amount": "1.00"}])
    shop.write("mail", [*made[1:4], *made[5:], made[7]])

    context, closed = shop.whole_way()

    assert closed.state is WindowState.GAPS
    assert shop.found(context, LEDGER_HOP) == {"O0": NEVER_SENT}
    assert shop.found(context, STORE_HOP) == {"O1": LOST}
    assert shop.found(context, "orders→stock") == {"O2": LOST, "O9": ("duplicate", "written_before_committed")}
    assert shop.found(context, "orders→mail") == {"O4": LOST, "O7": ("duplicate", "written_before_committed")}
    shown = explained("O2")
    assert "last judged: missing on orders→stock (window 1), open; matched on 3 hops" in shown
    assert len(shown.splitlines()) <= A_SCREEN


def test_a_key_that_was_lost_on_the_way_is_missing_on_one_hop_of_four(shop: ReconciledShop) -> None:
    lose_one_more_each(shop, in_a_row(shop), 20)

    context, closed = shop.whole_way()

    assert closed.state is WindowState.GAPS
    verdicts = {hop.name: shop.found(context, hop.name) for hop in context.pipeline.hops}
    assert verdicts == {
        LEDGER_HOP: {"O0": NEVER_SENT},
        "orders→priced": {"O1": NEVER_SENT},
        "priced→shipped": {"O2": NEVER_SENT},
        "shipped→warehouse": {"O3": LOST},
    }
    for key, sentence in {
        "O0": "missing on outbox→orders (window 1), open",
        "O2": "missing on priced→shipped (window 1), open; matched on 2 hops",
        "O9": "matched on 4 hops",
    }.items():
        shown = explained(key)
        assert shown.splitlines()[1] == f"last judged: {sentence}"
        assert len(shown.splitlines()) <= A_SCREEN


def test_the_whole_journey_of_a_repaired_key_over_five_points_is_one_screen(shop: ReconciledShop) -> None:
    lose_one_more_each(shop, in_a_row(shop, "{missing: upsert}"), 20)
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda *_: None)
    verify_window(context, lambda *_: None)
    shop.certify(context)

    shown = explained("O3")

    assert shown.splitlines()[1] == (
        "last judged: missing on shipped→warehouse (window 1), repaired; matched on 3 hops"
    )
    assert len(shown.splitlines()) <= A_SCREEN


def test_what_a_newer_revision_does_not_say_any_more_was_not_judged_last(shop: ReconciledShop) -> None:
    shop.describe(is_observing=True)
    shop.trade(orders(range(5)))
    shop.write("warehouse", orders([7]))
    shop.whole_way()
    assert "last judged: unexpected on orders→warehouse (window 1), open" in explained("O7")
    shop.sql("delete from warehouse where id = 'O7'")
    shop.whole_way()

    (document,) = map(json.loads, explained("O7", "--json").splitlines())

    assert [(item["revision"], item["verdict"]) for item in document["windows"]] == [(1, "unexpected")]
    assert document["last_judged"] == []
    assert "last judged" not in explained("O7")
