"""Kill a loader between committing its offsets and writing its rows (rows 21 and 22)."""

from collections.abc import Sequence
from dataclasses import replace

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.loader import BATCH, kill_between
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=21,
    name="A consumer commits, then dies before it writes",
    happens=(
        "A loader commits the offsets of a batch and is killed before its rows are in the store. It goes on behind the "
        "batch: its lag is 0, and the rows are lost."
    ),
    made="A loader that is killed by SIGKILL between the commit of a batch and its INSERT; then it is started again.",
    why=(
        "The store is asked for every key of the topic, whatever the group says. That the group is past the records "
        "only says how they were lost."
    ),
    is_short=True,
)
def commits_before_it_writes(lab: Lab) -> Outcome:
    made, batch = _killed(lab, ("commit", "write"))
    shop = lab.shop
    return Outcome(
        truth=f"Here {len(batch)} of {len(made)} orders were committed, and never written.",
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),),
        windows=(
            Window(
                judged=shop.day(),
                expected=replace(
                    _expected(made, batch, ("missing", "committed_before_written")),
                    reason=f"{STORE_HOP}: {len(batch)} keys missing, 0 allowed",
                ),
            ),
        ),
    )


@scenario(
    row=22,
    name="A consumer writes, then dies before it commits",
    happens=(
        "A loader writes the rows of a batch and is killed before it commits their offsets. It reads the batch again, "
        "and inserts it again."
    ),
    made="A loader that is killed by SIGKILL between the INSERT of a batch and its commit; then it is started again.",
    why="One record and two rows of its key: the store has no unique key, and the rows are counted by key.",
)
def writes_before_it_commits(lab: Lab) -> Outcome:
    made, batch = _killed(lab, ("write", "commit"))
    shop = lab.shop
    return Outcome(
        truth=f"Here {len(batch)} of {len(made)} orders are in the store twice.",
        naive=(
            Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
            Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=f"{len(batch)} repeated"),
        ),
        windows=(
            Window(
                judged=shop.day(),
                expected=replace(
                    _expected(made, batch, ("duplicate", "written_before_committed")),
                    reason=f"{STORE_HOP}: {len(batch)} keys duplicate, 0 allowed",
                ),
            ),
        ),
    )


def _killed(lab: Lab, steps: Sequence[str]) -> tuple[list[Order], list[Order]]:
    """Take orders to the store by a loader that is killed between its steps for a batch, and by the next one."""
    shop = lab.shop.open_shop(hop={"consumer_group": lab.shop.group, "compensation": "{missing: report}"})
    batches, rest = lab.random.randint(2, 8), lab.random.randint(1, 20)
    made = orders(range((batches + 1) * BATCH + rest))
    shop.write("outbox", made)
    shop.send(made)
    kill_between(shop.bootstrap, shop.dsn, topic=shop.topic, group=shop.group, steps=steps, batches=batches)
    shop.load()
    return made, made[batches * BATCH : (batches + 1) * BATCH]


def _expected(made: Sequence[Order], batch: Sequence[Order], wrong: tuple[str, str]) -> Judged:
    return Judged(
        state=WindowState.GAPS.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(batch)},
        found={STORE_HOP: {order["id"]: wrong for order in batch}},
    )
