"""Send records again behind a hop that filters (row 53)."""

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.survivors import SURVIVOR_TESTS
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=53,
    name="A resend into a topic whose store takes some of it",
    happens=(
        "An application sends records again, and the store behind the topic takes only those that pass a filter: some "
        "of the repeated ones, and not the others. What is in a topic cannot be taken out."
    ),
    made=(
        "The hop to the store has `where: \"region = 'US'\"`. Orders are sent, some of both regions again; the loader "
        "writes each order of the US once."
    ),
    why=(
        "A duplicate in a topic is contained where every store that takes its key holds it once, with the source's "
        "values. A store whose filter keeps the key out is held to having none. So the day is certified, and says "
        "what was repeated."
    ),
    covered_by=SURVIVOR_TESTS,
)
def resend_behind_a_filter(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(hop={"where": "\"region = 'US'\""})
    made = orders(range(lab.random.randint(20, 60)))
    passing = [order for order in made if order["region"] == "US"]
    kept_out = [order for order in made if order["region"] != "US"]
    again = [some for side in (passing, kept_out) for some in lab.random.sample(side, lab.random.randint(2, 8))]
    records = len(made) + len(again)
    shop.write("outbox", made)
    for session in (made, again):
        shop.send(session, settings={"enable.idempotence": True})
    shop.write("warehouse", passing)
    shop.commit_group(shop.group, records)
    answer = (
        Naive(
            answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
            expected=f"{records - len(passing)} lost",
        ),
        Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made)), expected=f"{len(again)} repeated"),
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
    )
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": records, "data": records},
            matched={LEDGER_HOP: len(made) - len(again), STORE_HOP: len(passing)},
            found={LEDGER_HOP: {order["id"]: ("duplicate", "application_resend") for order in again}},
            told=(f"{LEDGER_HOP}: {len(again)} contained",),
        ),
    )
    truth = (
        f"Here {len(made)} orders were sent, {len(passing)} of them of the US, and {len(again)} sent again; the store "
        "holds each order of the US once."
    )
    return Outcome(truth=truth, naive=answer, windows=(window,))
