"""Test that nothing writes a key which a tombstone deletes: plans, dry runs, chunks, and what verify says then."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, connections_of
from tests.world.combinations import with_every_change
from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def describe(shop: ReconciledShop, remedy: str, **more: object) -> None:
    """Describe a pipeline whose warehouse has erasures named by tombstones, and gets what it lacks by a remedy."""
    said: dict[str, object] = {
        "topic_key": "kafka.key",
        "more_points": {"warehouse": store("db", "warehouse", key="id", erased="tombstones")},
        "hop": {"compensation": f"{{missing: {remedy}, mismatched: upsert}}"},
    }
    shop.describe(**{**said, **more})  # type: ignore[arg-type]


def verify(context: WindowContext) -> None:
    """Judge the gaps again, without waiting."""
    verify_window(context, lambda *_: None, patience_seconds=0)


def held(shop: ReconciledShop, key: str) -> int:
    """Return how many rows the warehouse has of a key."""
    return int(shop.sql("select count(*) from warehouse where id = %s", key)[0][0])


def refusals(shop: ReconciledShop, context: WindowContext) -> list[Refusal]:
    """Return the refusals of a dry run of the window's plan."""
    plan = plan_window(context).plan
    assert plan is not None
    report = dry_run(shop.journal, plan.id, targets_of(shop.pipeline, connections_of(shop.pipeline)))
    assert report.risks == ()
    return [refusal for part in report.parts for refusal in part.reasons]


@pytest.mark.parametrize("remedy", ["upsert", "redeliver"])
@pytest.mark.parametrize("moment", with_every_change(["before the run", "before the plan"], first=1))
def test_a_key_that_a_tombstone_deletes_after_it_was_judged_is_not_written(
    shop: ReconciledShop, remedy: str, moment: str
) -> None:
    describe(shop, remedy)
    made = orders(range(10))
    shop.trade(made, unloaded=made[3:5])
    context = shop.judge_and_ask_the_gate()
    if moment == "before the plan":
        shop.delete(["O3"])
    frozen = plan_window(context)
    if moment == "before the run":
        shop.delete(["O3"])
        refusal = Refusal(RefusalCode.ERASED, f"warehouse: a tombstone deletes this key: {shop.topic}/0/10")
        assert refusals(shop, context) == [refusal]
    before = len(shop.read())

    compensate_window(context, lambda _: None)
    if remedy == "redeliver":
        shop.write("warehouse", made[4:5])
    verify(context)

    assert [action.key for action in frozen.actions] == (["O4"] if moment == "before the plan" else ["O3", "O4"])
    assert held(shop, "O3") == 0
    assert len(shop.read()) == before + (remedy == "redeliver")
    message = f"warehouse: a tombstone deletes this key: {shop.topic}/0/10"
    reasons = shop.journal_sql("select key, outcome, outcome_reason from makewhole.finding order by key")
    assert reasons == [("O3", "erased", message), ("O4", "repaired", None)]
    counts = shop.verified_counts(context, STORE_HOP)
    assert (counts.matched, counts.missing, counts.erased) == (9, 0, 1)
    assert shop.certify(context).state is WindowState.CERTIFIED


def test_a_key_that_a_tombstone_deletes_is_not_produced(shop: ReconciledShop) -> None:
    describe(shop, "report", ledger_hop={"compensation": "{missing: produce}"})
    made = orders(range(10))
    shop.trade(made, unsent=made[3:6])
    context = shop.judge_and_ask_the_gate()
    shop.delete(["O3"])
    frozen = plan_window(context)
    shop.delete(["O4"])

    compensate_window(context, lambda _: None)
    shop.write("warehouse", made[5:6])
    verify(context)

    assert [action.key for action in frozen.actions] == ["O4", "O5"]
    assert [record.key_text for record in shop.read() if record.value is not None].count("O4") == 0
    assert {key: shop.outcome_of(context, LEDGER_HOP, key)[0] for key in ("O3", "O4", "O5")} == {
        "O3": "erased",
        "O4": "erased",
        "O5": "repaired",
    }
    assert shop.certify(context).state is WindowState.CERTIFIED


def test_a_key_that_came_back_after_its_tombstone_is_left_to_its_new_record(shop: ReconciledShop) -> None:
    """The loader writes what came since; the window that holds the record judges it."""
    describe(shop, "upsert")
    made = orders(range(10))
    shop.trade(made, unloaded=made[3:5])
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    shop.delete(["O3", "O4"])
    shop.send(made[3:4])

    compensate_window(context, lambda _: None)

    assert (held(shop, "O3"), held(shop, "O4")) == (0, 0)
    verify(context)
    assert shop.outcome_of(context, STORE_HOP, "O3") == (
        "refused",
        "arrived: a record of the key came to orders at 0:12 after the window was judged",
    )


def test_a_row_that_differs_and_whose_key_a_tombstone_deletes_is_not_written_over(shop: ReconciledShop) -> None:
    """It is still there, and judged like any other; its deletion is on its way."""
    describe(shop, "upsert")
    made = orders(range(10))
    shop.trade(made)
    shop.sql("update warehouse set amount = 0 where id in ('O3', 'O4', 'O5')")
    shop.delete(["O3"])
    context = shop.judge_and_ask_the_gate()
    assert {key: verdict for key, (verdict, _) in shop.found(context, STORE_HOP).items()} == {
        "O3": "mismatched",
        "O4": "mismatched",
        "O5": "mismatched",
    }
    frozen = plan_window(context)
    shop.delete(["O4"])

    compensate_window(context, lambda _: None)
    verify(context)

    assert [action.key for action in frozen.actions] == ["O4", "O5"]
    zero, whole = [("O3", 0), ("O4", 0)], [("O5", float(made[5]["amount"]))]
    rows = shop.sql("select id, amount::float from warehouse where id in ('O3', 'O4', 'O5') order by id")
    assert rows == [*zero, *whole]
    assert shop.outcome_of(context, STORE_HOP, "O3")[1] == (
        f"erased: warehouse: a tombstone deletes this key: {shop.topic}/0/10"
    )


@pytest.mark.parametrize("remedy", ["upsert", "redeliver"])
@pytest.mark.parametrize("moment", ["before the plan", "before the run"])
def test_nothing_is_written_where_the_log_behind_the_window_is_gone(
    shop: ReconciledShop, remedy: str, moment: str
) -> None:
    describe(shop, remedy)
    made = orders(range(10))
    shop.trade(made, unloaded=made[3:4])
    context = shop.judge_and_ask_the_gate()
    if moment == "before the run":
        plan_window(context)
    shop.delete(["O3"])
    shop.send(orders([100], 1))
    shop.delete_records({0: 11})

    frozen = plan_window(context)
    compensate_window(context, lambda _: None)

    is_asked_first = moment == "before the run" and remedy == "upsert"  # its topic, for arrivals
    doubt = "the key may have arrived there" if is_asked_first else "a tombstone of the key may have been there"
    refusal = Refusal(
        RefusalCode.NOT_KNOWN,
        f"{shop.topic} partition 0 lost offsets from 10 on before they were looked at, so that {doubt}; run the window "
        "again",
    )
    assert held(shop, "O3") == 0
    if moment == "before the plan":
        assert (frozen.plan, [refused.refusal for refused in frozen.refusals]) == (None, [refusal])
    else:
        verify(context)
        assert shop.outcome_of(context, STORE_HOP, "O3") == ("refused", str(refusal))
