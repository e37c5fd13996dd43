"""Hold what scenarios of patterns share: the orders of a day, what is right of it, and what a producer says of it."""

from collections.abc import Sequence
from dataclasses import replace

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.steps import Step
from tests.lab.scenario import Lab, Naive, Outcome, Window
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

CERTIFIED, GAPS = WindowState.CERTIFIED.value, WindowState.GAPS.value
IN_ONE_REQUEST = {"linger_ms": 60_000, "retry_backoff_ms": 50}
"""Send what is produced before a flush as one request."""
NOT_TRIED_AGAIN = {**IN_ONE_REQUEST, "retries": 0, "enable_idempotence": False}


def batches_of_a_day(lab: Lab, least: int = 3) -> list[list[Order]]:
    """Orders of a day, in batches of several sizes."""
    sizes = [lab.random.randint(1, 20) for _ in range(lab.random.randint(least, 7))]
    made = iter(orders(range(sum(sizes))))
    return [[next(made) for _ in range(size)] for size in sizes]


def kills_of_a_day(lab: Lab, made: Sequence[Order], *, is_killed: bool) -> tuple[int, int]:
    """Return how many orders one batch has at most, and how often a reader is killed at one of its first two batches.
    All of them come to their second one, whatever the killed ones have committed."""
    batch = lab.random.randint(3, 8)
    kills = lab.random.randint(1, 3) if is_killed else 0
    return min(batch, len(made) // (2 * kills + 1)), kills


def flat(batches: Sequence[Sequence[Order]]) -> list[Order]:
    return [order for batch in batches for order in batch]


def whole_day(made: Sequence[Order]) -> Judged:
    """Return a certified day of these orders, each of which has one record and one row."""
    count = len(made)
    return Judged(
        state=CERTIFIED,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: count},
    )


def each(some: Sequence[Order], verdict: str, cause: str) -> Found:
    return {order["id"]: (verdict, cause) for order in some}


def reports(steps: Sequence[Step], expected: str) -> Naive:
    """Return what the producer's own delivery reports say, beside what is known of that."""
    notes = steps[-1].notes
    return Naive(answer=naive.reports(notes["delivered"], len(notes["failed"])), expected=expected)


def lag(shop: LabShop) -> Naive:
    return Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL)


def fail(lab: Lab, cut: int, unanswered: int) -> tuple[Rule, Rule]:
    """Have one produce request cut off on its way, and the answer to another one lost (counted from 1)."""
    add = lab.cluster.proxy.add
    return (
        add(Rule(api=Api.PRODUCE, fault=Fault.CUT, first=cut)),
        add(Rule(api=Api.PRODUCE, fault=Fault.LOSE_ANSWER, first=unanswered)),
    )


def sent_twice(made: Sequence[Order], again: Sequence[Order]) -> str:
    return f"Here {len(made)} orders were sent, {len(again)} of them twice, and the store has what the topic has."


def contained(shop: LabShop, made: Sequence[Order], again: Sequence[Order], cause: str, truth: str) -> Outcome:
    """Judge and repair a day of which some orders are twice in the topic and in the store, and take that back."""
    answer, before = lag(shop), shop.all_rows()
    context = shop.judge_and_repair(0)
    single, records = len(made) - len(again), len(made) + len(again)
    expected = Judged(
        state=CERTIFIED,
        accounting={"span": records, "data": records},
        matched={LEDGER_HOP: single, STORE_HOP: single},
        found={
            LEDGER_HOP: each(again, "duplicate", cause),
            STORE_HOP: each(again, "duplicate", "upstream_duplicate"),
        },
        messages=(f"{STORE_HOP}: {len(again)} repaired", f"{LEDGER_HOP}: {len(again)} contained"),
    )
    repaired = Window(judged=shop.verified_with_outcomes(context), expected=expected)
    open_again = (f"{STORE_HOP}: {len(again)} open", f"{LEDGER_HOP}: {len(again)} open")
    undone = Window(
        label="its repair taken back",
        judged=shop.undone(context),
        expected=replace(expected, state=GAPS, reason="", messages=open_again),
    )
    assert shop.all_rows() == before
    return Outcome(truth=truth, naive=(answer,), windows=(repaired, undone))
