"""Test that a bucket is judged again for what the rest of a topic's log says of it, and for nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.keys import key_hash, split_hex
from makewhole_spark import carrier
from makewhole_spark.reconcile import judge_window
from makewhole_spark.reconcile.bucket.task import BucketTask
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[list[BucketTask]]:
    """The buckets that Spark is given to judge, by each time that it is."""
    seen, really = list[list[BucketTask]](), carrier.carry_released

    def carry(spark: Any, journal: Any, tasks: Sequence[Any], run: Any) -> Any:
        if buckets := [task for task in tasks if isinstance(task, BucketTask)]:
            seen.append(buckets)
        return really(spark, journal, tasks, run)

    monkeypatch.setattr(judge_window, "carry_released", carry)
    return seen


def test_a_loss_of_which_the_rest_of_the_log_says_nothing_is_judged_once(
    shop: ReconciledShop, judged: list[list[BucketTask]]
) -> None:
    made = orders(range(40))
    shop.trade(made, unsent=made[5:8], unloaded=made[5:9])
    context = shop.open()
    shop.send(orders(range(100, 105), 1))

    shop.judge(context)

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O5", "O6", "O7"), ("missing", "never_produced"))
    assert shop.found(context, STORE_HOP) == {"O8": ("missing", "lost_after_topic")}
    assert len(judged) == 1


def test_only_the_buckets_of_records_that_came_later_are_judged_again(
    shop: ReconciledShop, judged: list[list[BucketTask]]
) -> None:
    made = orders(range(40))
    shop.trade(made, unsent=made[5:8], unloaded=made[5:8])
    shop.buckets = 2
    context = shop.open()
    shop.send(made[6:7])

    shop.judge(context)

    expected = dict.fromkeys(("O5", "O7"), ("missing", "never_produced"))
    assert shop.found(context, LEDGER_HOP) == expected
    first, again = judged
    of_late = bucket_name(split_hex(key_hash("O6"))[0], 2)
    assert len(first) > 2
    kept = [(task.hop.name, task.bucket, task.known_since.kept is not None) for task in again]
    assert kept == [(LEDGER_HOP, of_late, True)]
