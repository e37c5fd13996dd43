"""Have a reader seek (row 90)."""

from dataclasses import replace

from tests.lab.processes.loader import Loading, load
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import GAPS, each, lag, whole_day
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=90,
    name="A reader that seeks",
    happens=(
        "A consumer is started at an offset that is not the one which it committed: by hand, by a reset of its group, "
        "or by `auto.offset.reset`. Back, and rows are written again; on, and records are skipped."
    ),
    made=(
        "A loader that inserts and is set back by some records on one day (`duplicate: quarantine`, and then the "
        "repair is taken back), and on past some on the next (`missing: redeliver`)."
    ),
    why=(
        "Wherever it went, in the end its offsets stand at the end of the log. What it wrote twice has two rows, and "
        "what it skipped has none though its group is past it."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def seeks(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(hop={"consumer_group": shop.group})
    first, second = (lab.random.randint(20, 50) for _ in range(2))
    made, following = orders(range(first)), orders(range(1000, 1000 + second), 1)
    shop.write("outbox", made)
    shop.send(made)
    load(shop, Loading())
    back = lab.random.randint(1, 10)
    load(shop, Loading(skips_to={0: first - back}))
    answer, before = lag(shop), shop.all_rows()
    context = shop.judge_and_repair(0)
    twice = made[-back:]
    expected = replace(
        whole_day(made),
        matched={LEDGER_HOP: first, STORE_HOP: first - back},
        found={STORE_HOP: each(twice, "duplicate", "written_before_committed")},
        messages=(f"{STORE_HOP}: {back} repaired",),
    )
    windows = [Window(label="back", judged=shop.verified_with_outcomes(context), expected=expected)]
    undone = replace(expected, state=GAPS, reason="", messages=(f"{STORE_HOP}: {back} open",))
    windows.append(Window(label="its repair taken back", judged=shop.undone(context), expected=undone))
    assert shop.all_rows() == before
    shop.write("outbox", following)
    shop.send(following)
    skipped = lab.random.randint(1, 10)
    load(shop, Loading(skips_to={0: first + skipped}))
    context = shop.judge_and_repair(1)
    shop.settle_transactions()
    load(shop, Loading())
    expected = replace(
        whole_day(following),
        matched={LEDGER_HOP: second, STORE_HOP: second - skipped},
        found={STORE_HOP: each(following[:skipped], "missing", "committed_before_written")},
        messages=(f"{STORE_HOP}: {skipped} repaired",),
    )
    windows.append(Window(label="on", judged=shop.verified_with_outcomes(context), expected=expected))
    truth = f"Here the loader goes back by {back} of {first} records, and the day after past {skipped} of {second}."
    return Outcome(truth=truth, naive=(answer,), windows=tuple(windows))
