"""Load records of a transaction that has not ended (row 97)."""

from collections.abc import Sequence
from dataclasses import replace

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.loader import Loading, load
from tests.lab.processes.writer import Writer
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, each
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_BOTH = {"limits": "{share: 1.0}", "missing": "produce", "unexpected": "quarantine"}


@scenario(
    row=97,
    name="A reader of uncommitted records, and a transaction that is still open",
    happens=(
        "A consumer at `read_uncommitted` has loaded the records of a transaction before that ends. Whether its rows "
        "are right will be known when it has: until then they are neither missing nor too many."
    ),
    made=(
        "A transactional producer that is held before its end, and a loader that reads uncommitted records. Then it "
        "commits, or aborts (by the seed), and the window is run again. `missing: produce`, `unexpected: quarantine`."
    ),
    why=(
        "The record is read behind the stable offset, where it is neither committed nor aborted: its row is not known, "
        "and the evidence names the transaction. Nothing is moved aside that a commit makes right."
    ),
    covered_by=("tests/integration/spark/test_faults_of_logs.py",),
)
def uncommitted_and_open(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(compensation=_BOTH)
    before, inside = (lab.random.randint(5, 30) for _ in range(2))
    made = orders(range(before + inside))
    shop.write("outbox", made)
    shop.send(made[:before])
    writer = lab.ends.enter_context(Writer(shop.bootstrap, f"tx-{shop.topic}", timeout_ms=900_000))
    writer.begin()
    writer.send(shop.topic, [shop.record(order) for order in made[before:]])
    load(shop, Loading(isolation="read_uncommitted"))
    rows = Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=naive.WELL)
    there = shop.all_rows()
    expected = Judged(
        state=WindowState.NOT_KNOWN.value,
        accounting={"span": before, "data": before},
        matched={LEDGER_HOP: before, STORE_HOP: before},
        found={
            LEDGER_HOP: each(made[before:], "pending", "in_flight"),
            STORE_HOP: each(made[before:], "undecidable", "in_flight"),
        },
        incidents=(("open_transaction", 0, before, len(made)),),
        reason=f"not proven: {STORE_HOP}: {inside} keys undecidable, 0 allowed",
        messages=(f"{STORE_HOP}: {inside} open", f"{LEDGER_HOP}: {inside} open"),
    )
    judged = shop.verified_with_outcomes(shop.judge_and_repair(0))
    first = Window(label="while it is open", judged=judged, expected=expected)
    assert shop.all_rows() == there
    is_committed = lab.random.random() < 0.5
    writer.commit() if is_committed else writer.abort()
    shop.settle_transactions()
    context = shop.judge_and_repair(0)
    shop.settle_transactions()
    load(shop, Loading(isolation="read_uncommitted"))
    second = Window(
        label=f"run again, when it has been {'committed' if is_committed else 'aborted'}",
        judged=shop.verified_with_outcomes(context),
        expected=_ended(expected, made[before:], is_committed=is_committed),
    )
    assert [row[0] for row in shop.all_rows()] == sorted(order["id"] for order in made)
    truth = f"Here {inside} of {before + inside} orders are in the open transaction, and have a row."
    return Outcome(truth=truth, naive=(rows,), windows=(first, second))


def _ended(judged: Judged, inside: Sequence[Order], *, is_committed: bool) -> Judged:
    """Return what is said of the same day when the transaction has ended."""
    ended = replace(judged, state=CERTIFIED, incidents=(), reason=None)
    there, count = judged.matched[STORE_HOP], len(inside)
    if is_committed:
        return replace(ended, found={}, messages=(), matched={LEDGER_HOP: there + count, STORE_HOP: there})
    return replace(
        ended,
        found={
            LEDGER_HOP: each(inside, "missing", "never_produced"),
            STORE_HOP: each(inside, "unexpected", "not_in_source"),
        },
        messages=(f"{STORE_HOP}: {count} repaired", f"{LEDGER_HOP}: {count} repaired"),
    )
