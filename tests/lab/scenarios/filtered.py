"""Send records again behind a hop that filters, and let keys leave its filter (rows 53 and 68)."""

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
            messages=(f"{LEDGER_HOP}: {len(again)} contained",),
        ),
    )
    truth = (
        f"Here {len(made)} orders were sent, {len(passing)} of them of the US, and {len(again)} sent again; the store "
        "holds each order of the US once."
    )
    return Outcome(truth=truth, naive=answer, windows=(window,))


@scenario(
    row=68,
    name="A key leaves the filter of its store",
    happens=(
        "A store takes the customers of the EU. Some move away: the version that says so does not pass the filter, and "
        "the loader deletes their rows, or forgets to. Who looks for the last version that passed finds rows missing, "
        "and writes old ones back."
    ),
    made=(
        "Orders of the EU and their rows; of some a version with `region` US comes; of these the loader deletes some "
        "rows. The hop to the store has `where: \"region = 'EU'\"`, `missing: upsert` and `unexpected: quarantine`."
    ),
    why=(
        "The filter asks the latest version, as a ledger does with the row that it has. Where that does not pass, an "
        "absent row is right, and one that is there is unexpected: it is moved aside, and nothing is written back."
    ),
    covered_by=("tests/integration/spark/test_filters_of_versions.py",),
)
def left_the_filter(lab: Lab) -> Outcome:
    remedies = "{missing: upsert, mismatched: upsert, unexpected: quarantine}"
    shop = lab.shop.open_shop(
        is_upsert=True, has_version=True, hop={"where": "\"region = 'EU'\"", "compensation": remedies}
    )
    made = [order | {"version": 1, "region": "EU"} for order in orders(range(lab.random.randint(30, 60)))]
    moved = lab.random.sample(made, 10)
    kept = moved[:4]
    newer = [order | {"version": 2, "region": "US"} for order in moved]
    records = len(made) + len(newer)
    for sent in (made, newer):
        shop.write("outbox", sent)
        shop.send(sent)
    shop.write("warehouse", [order for order in made if order not in moved[4:]])
    shop.commit_group(shop.group, records)
    answer = Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL)
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    held = [order["id"] for order in made if order not in moved]
    assert sorted(shop.sql("select id from warehouse")) == sorted((key,) for key in held)
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": records, "data": records},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(kept)},
            found={STORE_HOP: {order["id"]: ("unexpected", "left_filter") for order in kept}},
            messages=(f"{STORE_HOP}: {len(kept)} repaired",),
        ),
    )
    gone = len(moved) - len(kept)
    truth = f"Here {len(moved)} of {len(made)} orders leave the EU; the loader deletes the rows of {gone} of them."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))
