"""Make sinks that keep their own progress: one that its group is ahead of, one restored (rows 70, 71)."""

from collections.abc import Sequence
from dataclasses import replace

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.pipeline_file import flow
from tests.world.shop import LEDGER_HOP, STORE_HOP

_GROUP = "loader-lab"
_PROGRESS = {"table": "sink_offsets", "topic": "topic", "partition": "part", "offset": "next_offset"}
_COVERED_BY = (
    "tests/integration/spark/test_sink_progress.py",
    "tests/integration/compensation/execution/test_loaders.py",
)


@scenario(
    row=70,
    name="A consumer group that is ahead of its sink",
    happens=(
        "A sink writes rows and its own offsets in one transaction, and its group commits in Kafka before. The "
        "transaction is rolled back: by the group everything was read, and the sink will read it again."
    ),
    made="Some orders do not reach the store yet; the group stands at the end, the sink's own progress before them.",
    why=(
        "Where the file names the sink's own progress, that goes before the offsets of the group, which are a copy. "
        "What it has not reached is handed over by name, and nothing is sent that the sink reads by itself."
    ),
    covered_by=_COVERED_BY,
)
def group_ahead(lab: Lab) -> Outcome:
    shop, made, loaded = _trade(lab)
    count = len(made)
    shop.commit_group(_GROUP, count)
    _keep(shop, loaded)
    return Outcome(
        truth=f"Here {count - loaded} of {count} orders are still to come to the sink, and its group is past them.",
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, _GROUP), expected=naive.WELL),),
        windows=(Window(judged=shop.day(), expected=_waiting(made, loaded)),),
    )


@scenario(
    row=71,
    name="The progress of a sink comes from another log",
    happens=(
        "The store was restored, or the topic made again, and the other was not: the sink's own progress lies behind "
        "the end of the log."
    ),
    made="Some orders do not reach the store; the sink's progress is far behind the end of the log, its group at it.",
    why=(
        "A progress that the log does not have says nothing, and the group is not asked in its place. The window is "
        "not known, and its reason names the table, the rows and the offset."
    ),
    covered_by=_COVERED_BY,
)
def progress_behind_the_end(lab: Lab) -> Outcome:
    shop, made, loaded = _trade(lab)
    count, beyond = len(made), lab.random.randint(5, 40)
    shop.commit_group(_GROUP, count)
    _keep(shop, count + beyond)
    return Outcome(
        truth=f"Here {count - loaded} of {count} orders were never loaded; the progress is {beyond} behind the end.",
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, _GROUP), expected=naive.WELL),),
        windows=(
            Window(
                judged=shop.day(),
                expected=replace(
                    _waiting(made, loaded),
                    state=WindowState.NOT_KNOWN.value,
                    incidents=(("progress_out_of_range", 0, 0, count),),
                    reason=f"not proven: next_offset of sink_offsets is {count + beyond} for orders/0, which is ",
                ),
            ),
        ),
    )


def _trade(lab: Lab) -> tuple[LabShop, list[Order], int]:
    """Take orders all the way, but for the last ones, which are not loaded."""
    shop = lab.shop.open_shop(hop={"consumer_group": _GROUP, "progress": flow(_PROGRESS)})
    shop.sql("create table sink_offsets (topic text, part int, next_offset bigint)")
    loaded, behind = (lab.random.randint(5, 40) for _ in range(2))
    made = orders(range(loaded + behind))
    shop.trade(made, unloaded=made[loaded:])
    return shop, made, loaded


def _keep(shop: LabShop, offset: int) -> None:
    shop.sql("insert into sink_offsets values (%s, 0, %s), ('another', 0, 0)", shop.topic, offset)


def _waiting(made: Sequence[Order], loaded: int) -> Judged:
    """Return a certified window of which the last orders are on their way to the store."""
    return Judged(
        state=WindowState.CERTIFIED.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: loaded},
        found={STORE_HOP: {order["id"]: ("pending", "not_yet_consumed") for order in made[loaded:]}},
    )
