"""Set a loader back: older versions are written over newer ones, and rows of yesterday are written wrongly
(rows 58 and 59). Change rows of a day that was judged, with their times left as they were (row 72)."""

from datetime import timedelta

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_REPAIRED = {"compensation": "{missing: upsert, mismatched: upsert}"}
_CERTIFIED = WindowState.CERTIFIED.value


@scenario(
    row=58,
    name="An older version is sent again the day after",
    happens=(
        "A batch of old messages is sent a second time, a day after newer versions were judged and certified. A loader "
        "that knows no versions writes them over the newer rows: topic and store agree on that day."
    ),
    made=(
        "Second versions on the first day; on the second day the first versions of some keys once more, half of which "
        "a script without versions writes into the store. `mismatched: upsert`."
    ),
    why=(
        "The latest version is the latest of any window: the key index has it with its position and the hash of its "
        "values. The row gets it back, read from the archive of the first day; rows of the loader that kept it stay."
    ),
    covered_by=("tests/integration/spark/test_latest_ever.py",),
)
def older_sent_again(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(is_upsert=True, has_version=True, hop=_REPAIRED)
    made = [order | {"version": 2} for order in orders(range(lab.random.randint(40, 80)))]
    first = Window(label="the first day", judged=_traded(shop, made, 0), expected=_expected(made))
    chosen = lab.random.sample(made, 12)
    at = (BORN + DAY + timedelta(hours=2)).isoformat()
    again = [order | {"version": 1, "amount": "0.25", "at": at} for order in chosen]
    today = [order | {"version": 1} for order in orders(range(500, 500 + lab.random.randint(10, 30)), 1)]
    shop.write("outbox", today)
    shop.send([*today, *again])
    shop.load()
    shop.upsert("warehouse", again[:6])
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    judged = _repaired(shop, 1)
    assert shop.rows([order["id"] for order in chosen]) == {order["id"]: (2, order["amount"]) for order in chosen}
    stale = {order["id"]: ("mismatched", "stale_version") for order in chosen[:6]}
    second = Window(
        label="the second day",
        judged=shop.verified(judged),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(today) + len(again), "data": len(today) + len(again)},
            matched={LEDGER_HOP: len(today), STORE_HOP: len(today) + len(again) - 6},
            found={STORE_HOP: stale},
        ),
    )
    return Outcome(
        truth="Here the older versions of 12 keys are sent again, and 6 of them are in the store.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second),
    )


@scenario(
    row=59,
    name="A loader that was set back rewrites the rows of yesterday",
    happens=(
        "After a mistake in its code a loader is set back and loads yesterday once more, with wrong amounts. The rows "
        "have today's time; their records are yesterday's, and that day is certified."
    ),
    made=(
        "A day is certified. On the next day some of its rows get the time of that day, half of them another amount, "
        "and a region that nothing compares. `mismatched: upsert`."
    ),
    why=(
        "A row in a window's times is held to its record, whichever window has that. The compared columns get the "
        "record's values back; the others stay as they are, and so do the rows that hold what their records say."
    ),
    covered_by=("tests/integration/spark/test_latest_ever.py",),
)
def rows_rewritten(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop=_REPAIRED)
    made = orders(range(lab.random.randint(40, 80)))
    first = Window(label="the first day", judged=_traded(shop, made, 0), expected=_expected(made))
    today = orders(range(500, 500 + lab.random.randint(10, 30)), 1)
    shop.write("outbox", today)
    shop.send(today)
    shop.load()
    chosen = lab.random.sample(made, 12)
    ids = [order["id"] for order in chosen]
    shop.sql("update warehouse set at = %s, region = 'XX' where id = any(%s)", BORN + DAY + timedelta(hours=2), ids)
    shop.sql("update warehouse set amount = amount + 7 where id = any(%s)", ids[:6])
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    judged = _repaired(shop, 1)
    rows = shop.sql("select id, amount::text, region from warehouse where id = any(%s) order by id", ids)
    assert rows == sorted((order["id"], order["amount"], "XX") for order in chosen)
    second = Window(
        label="the second day",
        judged=shop.verified(judged),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(today), "data": len(today)},
            matched={LEDGER_HOP: len(today), STORE_HOP: len(today)},
            found={STORE_HOP: dict.fromkeys(ids[:6], ("mismatched", "value_differs"))},
            incidents=(("slice_shrunk", None, None, None),),  # the rows have left the times of the first day
        ),
    )
    return Outcome(
        truth="Here 12 rows of the first day are loaded again on the second, 6 of them with another amount.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second),
    )


@scenario(
    row=72,
    name="Rows are changed behind their records, with their times left as they were",
    happens=(
        "A row is mended by hand, or a job rounds amounts of last week, and the column that says when a row was "
        "loaded stays as it was. No later day has these rows among its own, and their number is the same."
    ),
    made=(
        "A day is certified. On the next day some of its rows get another amount and a region that nothing compares, "
        "half of these a time an hour earlier. `late: 1h`, `mismatched: upsert`."
    ),
    why=(
        "Each window looks again at rows of earlier windows by their keys, a share at a time. What differs from its "
        "record is judged with the window, and gets the record's values back."
    ),
    covered_by=("tests/integration/spark/test_rewritten_rows.py",),
)
def rows_changed_behind_their_records(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop=_REPAIRED, late="1h")
    made = orders(range(lab.random.randint(40, 80)))
    first = Window(label="the first day", judged=_traded(shop, made, 0), expected=_expected(made))
    today = orders(range(500, 500 + lab.random.randint(10, 30)), 1)
    shop.write("outbox", today)
    shop.send(today)
    shop.load()
    chosen = lab.random.sample(made, 12)
    ids = [order["id"] for order in chosen]
    shop.sql("update warehouse set amount = amount + 7, region = 'XX' where id = any(%s)", ids)
    shop.sql("update warehouse set at = at - interval '1 hour' where id = any(%s)", ids[:6])
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    judged = _repaired(shop, 1)
    rows = shop.sql("select id, amount::text, region from warehouse where id = any(%s) order by id", ids)
    assert rows == sorted((order["id"], order["amount"], "XX") for order in chosen)
    second = Window(
        label="the second day",
        judged=shop.verified(judged),
        expected=Judged(
            state=_CERTIFIED,
            accounting={"span": len(today), "data": len(today)},
            matched={LEDGER_HOP: len(today), STORE_HOP: len(today)},
            found={STORE_HOP: dict.fromkeys(ids, ("mismatched", "value_differs"))},
        ),
    )
    return Outcome(
        truth="Here 12 rows of the first day get another amount, 6 of them an earlier time, and none today's.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second),
    )


def _traded(shop: LabShop, made: list[Order], day: int) -> Judged:
    """Take a day's orders all the way; judge the day."""
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    return shop.day(day)


def _expected(made: list[Order]) -> Judged:
    count = len(made)
    return Judged(
        state=_CERTIFIED,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: count},
    )


def _repaired(shop: LabShop, day: int) -> WindowContext:
    """Judge a day and repair what is wrong."""
    context = shop.judge_and_ask_the_gate(day)
    assert plan_window(context).plan is not None
    shop.repair(context)
    return context
