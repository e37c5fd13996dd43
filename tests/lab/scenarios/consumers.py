"""Make consumers that never come: a partition that stands at one record, a group that is not there (rows 42, 43)."""

from datetime import timedelta

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_NIGHT = timedelta(hours=25)
_GROUP = "loader-lab"


@scenario(
    row=42,
    name="A partition stands at one bad record",
    happens="The loader dies at one record, starts again, and dies there again. Everything behind it waits.",
    made="The group's offset stays at one order for two nights; orders go on coming.",
    why=(
        "What the group has not reached is handed over by name and counted, and the group that stands is told. Past "
        "`pending.max_age` it is missing, and not sent again: it still stands in front of the loader."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def standing_partition(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"consumer_group": _GROUP})
    before, behind, later = (lab.random.randint(5, 40) for _ in range(3))
    made, following = orders(range(before + behind)), orders(range(1000, 1000 + later), 1)
    shop.trade(made, unloaded=made[before:])
    shop.commit_group(_GROUP, before)
    first = Window(
        label="the first night",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": before + behind, "data": before + behind},
            matched={LEDGER_HOP: before + behind, STORE_HOP: before},
            found={STORE_HOP: {order["id"]: ("pending", "not_yet_consumed") for order in made[before:]}},
        ),
    )
    shop.let_pass(_NIGHT)
    shop.trade(following, unloaded=following)
    found = {order["id"]: ("missing", "not_consumed") for order in made[before:]}
    found |= {order["id"]: ("pending", "not_yet_consumed") for order in following}
    second = Window(
        label="the second night",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": later, "data": later},
            matched={LEDGER_HOP: later, STORE_HOP: 0},
            found={STORE_HOP: found},
            incidents=(("consumer_stalled", 0, before, before + behind + later),),
            reason="",
        ),
    )
    return Outcome(
        truth=f"Here {behind} orders of the first day and {later} of the second never reach the store.",
        naive=(Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made) + later), expected=naive.WELL),),
        windows=(first, second),
    )


@scenario(
    row=43,
    name="A consumer group that does not exist",
    happens="The group in the configuration is mistyped, or its offsets expired: for it, everything is still to come.",
    made="A pipeline file names a group that never committed; some orders do not reach the store.",
    why=(
        "Without an offset nothing tells late from lost. The window is not known, and says which group has none, in "
        "which partition."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def unknown_group(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"consumer_group": _GROUP + "-mistyped"})
    loaded, lost = (lab.random.randint(5, 40) for _ in range(2))
    made = orders(range(loaded + lost))
    shop.trade(made, unloaded=made[loaded:])
    count = len(made)
    return Outcome(
        truth=f"Here {lost} of {count} orders were never loaded.",
        naive=(Naive(answer=naive.records(shop.bootstrap, shop.topic, count), expected=naive.WELL),),
        windows=(
            Window(
                judged=shop.day(),
                expected=Judged(
                    state=WindowState.NOT_KNOWN.value,
                    accounting={"span": count, "data": count},
                    matched={LEDGER_HOP: count, STORE_HOP: loaded},
                    found={STORE_HOP: {order["id"]: ("pending", "not_yet_consumed") for order in made[loaded:]}},
                    incidents=(("group_unknown", 0, 0, count),),
                    reason="not proven: group `loader-lab-mistyped` has committed no offset in orders/0, ",
                ),
            ),
        ),
    )
