"""Test redelivery to a topic that several stores and groups read: no reader gets a record twice unseen."""

from collections.abc import Sequence

import pytest

from makewhole import sql
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification import other_stores
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.errors import NotYetError
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, store, topic
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whatever may be large one row at a time: what is found does not depend on where a piece ends."""
    monkeypatch.setattr(sql, "_ROWS_OF_A_PIECE", 1)
    monkeypatch.setattr(other_stores, "BATCH", 1)


LAKE_HOP = "orders→lake"
DESPITE = "{to: source, despite: [lake-loader]}"
TWICE = ("duplicate", "redelivered")
MADE = orders(range(10))
LOST = MADE[4]


def test_a_second_store_that_a_redelivery_doubles_is_a_finding_until_it_is_mended(shop: ReconciledShop) -> None:
    """The lake appends whatever it reads, at the time at which it reads it: no slice of its window has the copy."""
    first = repaired_by_redelivery(shop)
    shop.write("lake", [loaded_on(LOST, day=1)])

    verified = verify_window(first, lambda *_: None, patience_seconds=0)

    assert (verified.whole, verified.gaps) == (1, 2)
    assert shop.found(first, STORE_HOP) == {"O4": ("missing", "lost_after_topic")}
    assert shop.found(first, LAKE_HOP) == {"O4": TWICE}
    assert shop.outcome_of(first, STORE_HOP, "O4") == ("repaired", None)
    plan = shop.journal_sql("select id from makewhole.plan")[0][0]
    assert shop.outcome_of(first, LAKE_HOP, "O4") == (
        "open",
        f"lake holds it 2 times since plan {plan} sent its record to orders again",
    )
    assert shop.certify(first).state is WindowState.GAPS

    trade(shop, orders(range(100, 105), 1))
    second = shop.judge_and_ask_the_gate(1)  # the window of the record that was sent again
    assert shop.found(second, LAKE_HOP)["O4"][0] == "duplicate"
    again = shop.judge_and_ask_the_gate(0)
    assert (again.window.revision, shop.found(again, LAKE_HOP)["O4"][0]) == (2, "duplicate")
    frozen = plan_window(again)
    assert [(action.remedy.value, action.target, action.key) for action in frozen.actions] == [
        ("quarantine", "lake", "O4")
    ]
    compensate_window(again, lambda _: None)
    verify_window(again, lambda *_: None, patience_seconds=0)
    assert shop.certify(again).state is WindowState.CERTIFIED


def test_a_doubled_store_that_is_mended_while_verify_waits_is_whole(shop: ReconciledShop) -> None:
    first = repaired_by_redelivery(shop)
    shop.write("lake", [loaded_on(LOST, day=1)])
    verify_window(first, lambda *_: None, patience_seconds=0)
    before = shop.verified_counts(first, LAKE_HOP)
    assert (before.matched, before.duplicate, before.extra_copies) == (9, 1, 1)

    shop.sql("delete from lake where id = 'O4' and at >= '2025-03-02'")
    verified = verify_window(first, lambda *_: None, patience_seconds=0)

    assert (verified.whole, verified.gaps) == (2, 2)
    after = shop.verified_counts(first, LAKE_HOP)
    assert (after.matched, after.duplicate, after.extra_copies) == (10, 0, 0)
    assert shop.certify(first).state is WindowState.CERTIFIED


def test_verify_waits_for_a_reader_that_has_not_passed_the_records(shop: ReconciledShop) -> None:
    first = repaired_by_redelivery(shop)
    with pytest.raises(NotYetError, match="other readers may still load what was sent again, for which consumers have"):
        verify_window(first, lambda *_: None, patience_seconds=20, stays_seconds=0)

    shop.commit_group("lake-loader", len(shop.read()))
    verified = verify_window(first, lambda *_: None, patience_seconds=20, stays_seconds=0)

    assert (verified.whole, verified.gaps) == (1, 1)
    assert shop.certify(first).state is WindowState.CERTIFIED


def test_verify_waits_for_a_sink_by_its_own_progress_whatever_its_group_says(shop: ReconciledShop) -> None:
    shop.sql("create table lake_offsets (part int, next_offset bigint)")
    first = repaired_by_redelivery(shop, progress="{table: lake_offsets, partition: part, offset: next_offset}")
    shop.sql("insert into lake_offsets values (0, 10)")
    shop.commit_group("lake-loader", len(shop.read()))
    with pytest.raises(NotYetError, match="other readers may still load what was sent again, for which consumers have"):
        verify_window(first, lambda *_: None, patience_seconds=20, stays_seconds=0)

    shop.sql("update lake_offsets set next_offset = 11")
    verified = verify_window(first, lambda *_: None, patience_seconds=20, stays_seconds=0)

    assert (verified.whole, verified.gaps) == (1, 1)


@pytest.mark.parametrize("source", ["orders", "sales"])
def test_a_key_that_the_other_store_has_is_not_sent_and_the_finding_says_why(shop: ReconciledShop, source: str) -> None:
    """The lake is filled from the topic under its one name, or from a second point that is the same topic."""
    describe(shop, redeliver="{to: source}", **{"from": source})
    trade(shop, MADE, unloaded=[LOST])
    before = len(shop.read())
    first = sent_again(shop, day=0)
    verify_window(first, lambda *_: None, patience_seconds=0)

    assert len(shop.read()) == before
    assert shop.outcome_of(first, STORE_HOP, "O4") == (
        "refused",
        "twice: lake holds the key, and would get it a second time; use upsert, a replay topic, or 'despite' under "
        "'redeliver' if that does no harm",
    )
    assert shop.certify(first).state is WindowState.GAPS


def describe(shop: ReconciledShop, redeliver: str | None = None, **lake_hop: str) -> None:
    """A lake beside the warehouse; what the warehouse lacks is sent again to the topic of both."""
    if not shop.sql("select from pg_tables where tablename = 'lake'"):
        shop.sql("create table lake (like warehouse)")
    hop: Settings = {
        "compensation": "{missing: redeliver, duplicate: quarantine}",
        **({} if redeliver is None else {"redeliver": redeliver}),
    }
    of_lake = {"consumer_group": "lake-loader", "compensation": "{missing: report, duplicate: quarantine}", **lake_hop}
    second_name = {"sales": topic("log", shop.topic)} if lake_hop.get("from") == "sales" else {}
    shop.describe(
        hop=hop,
        more_points={"lake": store("db", "lake"), **second_name},
        more_hops=[{"from": "orders", "to": "lake", **of_lake}],
    )


def trade(shop: ReconciledShop, made: Sequence[Order], *, unloaded: Sequence[Order] = ()) -> None:
    """Both loaders at work; the warehouse lacks what is `unloaded`."""
    shop.trade(made, unloaded=unloaded)
    shop.write("lake", made)
    shop.commit_group("lake-loader", len(shop.read()))


def repaired_by_redelivery(shop: ReconciledShop, **lake_hop: str) -> WindowContext:
    """A window in which the warehouse lacked an order: its record was sent again, and the warehouse has loaded it."""
    describe(shop, redeliver=DESPITE, **lake_hop)
    trade(shop, MADE, unloaded=[LOST])
    context = sent_again(shop, day=0)
    shop.write("warehouse", [LOST])
    return context


def sent_again(shop: ReconciledShop, day: int) -> WindowContext:
    """A window whose plan sent one record again."""
    context = shop.judge_and_ask_the_gate(day)
    frozen = plan_window(context)
    assert [(action.remedy.value, action.target, action.key) for action in frozen.actions] == [
        ("redeliver", "orders", "O4")
    ]
    compensate_window(context, lambda _: None)
    return context


def loaded_on(order: Order, day: int) -> Order:
    """The row that a loader writes which notes the time at which it loads."""
    return {**order, "at": orders([order["number"]], day)[0]["at"]}
