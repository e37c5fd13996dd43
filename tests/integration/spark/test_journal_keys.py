"""Test that keys which the journal knows reach the tasks in files of their buckets, and are judged as from memory: what
was handed over, what waits, and what compensation wrote."""

from collections import Counter
from datetime import timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import connect
from makewhole.journal.results import snapshot_manifests
from makewhole.lake import rows_by_bucket
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.gather.bucket_tasks import bucket_tasks
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from tests.integration.spark.judged_otherwise import as_committed, otherwise
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOUR = timedelta(hours=1)


def judged_from_files(shop: ReconciledShop, context: WindowContext, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Hold what was committed to what is found from files alone; return how many rows there are of each kind."""
    committed, in_memory = as_committed(shop, context), otherwise(shop, context, looks_all_up=False)
    with monkeypatch.context() as few:
        few.setattr(rows_by_bucket, "_FEW", 0)
        few.setattr(rows_by_bucket, "_ROWS_TOGETHER", 2)
        tasks = tasks_of(shop, context)
        assert otherwise(shop, context, looks_all_up=False) == in_memory
    assert {hop: judged.without_evidence for hop, judged in in_memory.items()} == {
        hop: judged.without_evidence for hop, judged in committed.items()
    }
    kinds: Counter[str] = Counter()
    for task in tasks:
        of_ends = {"replays": task.target.replays, "source_replays": task.source.replays}
        for kind, rows in (vars(task.keys) | of_ends).items():
            kinds[f"{kind} on {task.hop.name}"] += rows.number
            assert rows.few.is_empty()  # nothing travels with the task
            assert len(rows.read(context.storage)) == rows.number
    return +kinds


def tasks_of(shop: ReconciledShop, context: WindowContext) -> list[BucketTask]:
    with connect(shop.journal) as journal:
        manifests = snapshot_manifests.snapshots(journal, context.window)
        neighbours = NeighbouringWindows(journal=journal, context=context, manifests=manifests)
        return [task for hop in context.pipeline.hops for task in bucket_tasks(neighbours, hop)]


@pytest.mark.parametrize("is_upsert", [pytest.param(False, marks=pytest.mark.extended), True], ids=["event", "upsert"])
def test_keys_that_are_handed_over_again_and_again(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch, is_upsert: bool
) -> None:
    """Takes long: each window is judged twice, from the files of known keys and from the journal."""
    shop.describe(hop={"consumer_group": "loader"}, is_upsert=is_upsert)
    made, later = orders(range(10)), orders(range(100, 105), 1)
    shop.trade(made, unloaded=made[6:])
    shop.commit_group("loader", 6)
    shop.whole_way()
    shop.let_pass(HOUR * 13)
    shop.trade(later, unloaded=later[2:])
    second, _ = shop.whole_way(1)
    assert judged_from_files(shop, second, monkeypatch) == {f"handed_over on {STORE_HOP}": 4}

    shop.let_pass(HOUR * 13)
    shop.trade(orders(range(200, 205), 2))
    third = shop.judged(2)
    assert {verdict for verdict, _ in shop.found(third, STORE_HOP).values()} >= {"missing", "pending"}
    assert judged_from_files(shop, third, monkeypatch) == {f"handed_over on {STORE_HOP}": 7}

    again = shop.judged(2)
    assert again.window.revision == 2
    kinds = judged_from_files(shop, again, monkeypatch)
    assert kinds[f"handed_over on {STORE_HOP}"] == 7
    assert kinds[f"judged_pending on {STORE_HOP}"] == sum(
        verdict == "pending" for verdict, _ in shop.found(third, STORE_HOP).values()
    )


@pytest.mark.extended
def test_keys_that_plans_wrote(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sql("create table direct (like warehouse)")
    direct = {"from": "outbox", "to": "direct", "compensation": "{missing: upsert}"}
    point = {"kind": "store", "connection": "db", "table": "direct", "key": "id"}
    shop.describe(
        ledger_hop={"compensation": "{missing: produce}"},
        hop={"compensation": "{missing: redeliver}"},
        more_points={"direct": point},
        more_hops=[direct],
    )
    made = orders(range(20))
    shop.trade(made, unsent=made[4:7], unloaded=made[10:14])
    shop.write("direct", made[:15])
    first = shop.judge_and_ask_the_gate(0)
    assert plan_window(first).plan is not None
    compensate_window(first, lambda _: None)
    shop.write("warehouse", made[10:14])
    shop.write("warehouse", made[4:7])
    verify_window(first, lambda *_: None, patience_seconds=0)
    shop.certify(first)
    shop.write("direct", made[15:16])  # late, beside the row that the plan wrote

    later = orders(range(100, 105), 1)
    shop.trade(later)
    shop.write("direct", later)
    second = shop.judged(1)

    assert shop.found(second, "outbox→direct") == {"O15": ("duplicate", "late_original")}
    kinds = judged_from_files(shop, second, monkeypatch)
    assert (kinds[f"replays on {LEDGER_HOP}"], kinds[f"source_replays on {STORE_HOP}"]) == (7, 7)
    assert kinds["followed on outbox→direct"] == 5

    again = shop.judged(0)  # what the plans wrote lies behind this window: written, and in the tail of the log
    kinds = judged_from_files(shop, again, monkeypatch)
    assert kinds[f"written on {STORE_HOP}"] == 7
