"""Test copies whose effect cannot be deleted, the whole way: found, reversed once, verified, certified, and let be."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.pipeline_file import Settings
from tests.world.pipeline_file import topic as topic_point
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

REVERSE = {
    "compensation": "{duplicate: reverse}",
    "reverse": '{to: reversals, value: {id: "{{ key }}", amount: "{{ -row.amount }}"}}',
}


def test_rows_written_twice_are_taken_back_once_and_the_window_is_certified_twice(shop: ReconciledShop) -> None:
    topic = prepare(shop, hop=REVERSE)
    made = orders(range(10))
    shop.trade(made)
    shop.write("warehouse", [made[3], made[3], made[7]])

    first, closed = repaired(shop, actions=3)

    taken_back = [("O3", -3.5), ("O3", -3.5), ("O7", -7.5)]
    assert sorted(sent(shop, topic)) == taken_back
    assert (closed.state, shop.outcomes(first)) == (WindowState.CERTIFIED, {"O3": "reversed", "O7": "reversed"})
    assert closed.certificate is not None
    assert closed.certificate.body["how"]["findings"] == {"duplicate: reversed": 2}
    assert set(shop.manifests(first)) == {"outbox", "orders", "warehouse"}

    again, second = repaired(shop, actions=None)

    assert again.window.revision == 2
    assert shop.outcomes(again) == {"O3": "reversed", "O7": "reversed"}
    assert sorted(sent(shop, topic)) == taken_back
    assert second.certificate is not None
    assert (second.state, second.certificate.digest) == (WindowState.CERTIFIED, closed.certificate.digest)


def test_records_sent_twice_are_taken_back_in_the_window_that_they_fall_into(shop: ReconciledShop) -> None:
    topic = prepare(shop, ledger_hop=REVERSE)
    made = orders(range(10))
    shop.trade(made)
    shop.send([made[3]])
    first, closed = repaired(shop, actions=1)
    assert (closed.state, shop.outcomes(first)) == (WindowState.CERTIFIED, {"O3": "reversed"})

    shop.trade(orders(range(100, 105), 1))
    shop.send([{**made[3], "at": orders([3], 1)[0]["at"]}, {**made[5], "at": orders([5], 1)[0]["at"]}])
    second, closed = repaired(shop, actions=2, day=1)

    assert (closed.state, shop.outcomes(second)) == (WindowState.CERTIFIED, {"O3": "reversed", "O5": "reversed"})
    assert sorted(sent(shop, topic)) == [("O3", "-3.50"), ("O3", "-3.50"), ("O5", "-5.50")]
    assert set(shop.found(second, STORE_HOP)) == set()


def test_a_reversal_that_is_not_in_its_topic_leaves_the_window_open(shop: ReconciledShop) -> None:
    """The journal says that it was written, and the log that was never cut does not have it."""
    prepare(shop, hop=REVERSE)
    made = orders(range(10))
    shop.trade(made)
    shop.write("warehouse", [made[3]])
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    shop.journal_sql("update makewhole.plan set state = 'done' where id = %s", plan.id)
    shop.journal_sql(
        "insert into makewhole.chunk (plan, target, chunk, actions, place) values (%s, 'reversals', 0, 1, 'nowhere')",
        plan.id,
    )
    verify_window(context, lambda *_: None)

    assert shop.outcomes(context) == {"O3": "open"}
    assert shop.certify(context).state is WindowState.GAPS


def test_one_more_row_of_a_key_that_was_taken_back_is_a_duplicate_and_touched_ones_are_not(
    shop: ReconciledShop,
) -> None:
    """All of these rows come with a time of the first day. The next window finds as many as before of `O7`, and one
    more of `O3`, whose first copies no window would judge again."""
    prepare(shop, hop=REVERSE)
    made = orders(range(10))
    shop.trade(made)
    shop.write("warehouse", [made[3], made[7]])
    assert repaired(shop, actions=2)[1].state is WindowState.CERTIFIED
    shop.sql("update warehouse set region = 'XX' where id in ('O3', 'O7')")
    shop.trade(orders(range(100, 105), 1))
    shop.write("warehouse", [made[3]])

    context = shop.judge_and_ask_the_gate(1)

    assert shop.found(context, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}
    assert shop.evidence(context, STORE_HOP, "O3")["target_copies"] == 3
    assert plan_window(context).plan is None  # which of the rows was taken back is not certain
    assert shop.certify(context).state is WindowState.GAPS


def prepare(shop: ReconciledShop, *, hop: Settings | None = None, ledger_hop: Settings | None = None) -> str:
    topic = shop.add_topic()
    shop.describe(hop=hop or {}, ledger_hop=ledger_hop or {}, more_points={"reversals": topic_point("log", topic)})
    if ledger_hop:  # the amounts of records are texts, which are not negated
        shop.file.write_text(shop.file.read_text().replace('"{{ -row.amount }}"', '"-{{ row.amount }}"'))
    return topic


def repaired(shop: ReconciledShop, *, actions: int | None, day: int = 0) -> tuple[WindowContext, ClosedWindow]:
    """A window on its whole way; `actions` None: nothing is left to do."""
    context = shop.judge_and_ask_the_gate(day)
    frozen = plan_window(context)
    assert (frozen.plan and frozen.plan.actions, frozen.refusals) == (actions, ())
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None)
    return context, shop.certify(context)


def sent(shop: ReconciledShop, topic: str) -> list[tuple[str, object]]:
    """Return key and amount of the committed reversals."""
    return [(value["id"], value["amount"]) for value in (record.document for record in shop.read(topic))]
