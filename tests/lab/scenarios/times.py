"""Make timestamps that are wrong: 1970, an hour ahead, late arrivals, and the broker's own clock (row 19),
and rows with times of days that were judged already (row 48)."""

from datetime import UTC, datetime, timedelta

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, DAY, Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

CERTIFIED = WindowState.CERTIFIED.value
HOUR_MS = 3_600_000
_1970_MS = 1  # clients take 0 for now


@scenario(
    row=19,
    name="Timestamps that lie",
    happens="A record's CreateTime is what its producer says: 1970, an hour ahead, or the old time of a late record.",
    made=(
        "Orders of one day, some stamped 1970, some an hour ahead and so on the next day, and some sent only after the "
        "day was judged, with the timestamps of that day."
    ),
    why=(
        "Windows are offset ranges: a timestamp chooses where one ends, once, and decides about no record. An order "
        "that lies behind the end is found there by its key; a record is judged once, in the window of its offset."
    ),
    covered_by=("tests/integration/spark/test_windows.py",),
)
def lying_clocks(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    day = _late_evening(orders(range(lab.random.randint(60, 150))))
    ancient, ahead = 5 + lab.random.randint(0, 10), 2 + lab.random.randint(0, 8)
    late = lab.random.randint(3, 20)
    punctual, delayed = day[:-late], day[-late:]
    lies = dict.fromkeys((order["id"] for order in lab.random.sample(punctual[:-20], ancient)), _1970_MS)
    lies |= {order["id"]: milliseconds(order["at"]) + HOUR_MS for order in punctual[-20 : -20 + ahead]}
    shop.write("outbox", day)
    shop.send_stamped([(order, lies.get(order["id"], milliseconds(order["at"]))) for order in punctual])
    shop.load()
    end = next(at for at, order in enumerate(punctual) if lies.get(order["id"], 0) >= milliseconds(_END))
    context = shop.open()
    shop.send_stamped([(order, milliseconds(order["at"])) for order in delayed])
    shop.load()
    of_the_day = naive.times(shop.bootstrap, shop.topic, BORN, BORN + DAY, len(day))
    first = Window(
        label="the day",
        judged=shop.close(context),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": end, "data": end},
            matched={LEDGER_HOP: len(day), STORE_HOP: end},
        ),
    )
    following = orders(range(1000, 1000 + lab.random.randint(5, 50)), 1)
    shop.write("outbox", following)
    shop.send(following)
    shop.load()
    rest = len(day) - end + len(following)
    of_the_next = naive.times(shop.bootstrap, shop.topic, BORN + DAY, BORN + 2 * DAY, len(following))
    answer = (
        Naive(answer=of_the_day, expected=f"{ancient + ahead} lost"),
        Naive(answer=of_the_next, expected=f"{ahead} repeated"),
    )
    second = Window(
        label="the day after",
        judged=shop.day(1),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": rest, "data": rest},
            matched={LEDGER_HOP: len(following), STORE_HOP: rest},
        ),
    )
    truth = (
        f"Here all {len(day)} orders of the day were sent and loaded, {ancient} of them stamped 1970, {ahead} an hour "
        f"ahead, and {late} sent after the window had been cut."
    )
    return Outcome(truth=truth, naive=answer, windows=(first, second))


_END = (BORN + DAY).isoformat()


def _late_evening(made: list[Order]) -> list[Order]:
    """The same orders, a quarter of a minute apart, the last of them a minute before midnight."""
    last = BORN + DAY - timedelta(minutes=1)
    return [
        order | {"at": (last - timedelta(seconds=15 * (len(made) - 1 - at))).isoformat()}
        for at, order in enumerate(made)
    ]


@scenario(
    row=19,
    name="A topic with the brokers' clock (LogAppendTime)",
    happens="The broker overwrites every timestamp with its own time: when a record came, not when its event was.",
    made="Orders of earlier days, sent today to a topic with `message.timestamp.type=LogAppendTime`; two windows.",
    why="The ledger says which orders there are, offsets say which records: no event time is needed to join them.",
)
def brokers_clock(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(topic={"message_timestamp_type": "LogAppendTime"})
    batches = []
    for number in range(2):
        start = datetime.now(UTC) - timedelta(days=1 + lab.random.randint(0, 30))
        made = orders(range(100 * number, 100 * number + lab.random.randint(10, 90)))
        batches.append([order | {"at": (start + timedelta(seconds=at)).isoformat()} for at, order in enumerate(made)])
    windows = []
    for number, made in enumerate(batches):
        shop.write("outbox", made)
        shop.send(made)
        shop.load()
        count = len(made)
        windows.append(
            Window(
                label=f"window {number + 1}",
                judged=shop.close(shop.open_until(datetime.now(UTC))),
                expected=Judged(
                    state=CERTIFIED,
                    accounting={"span": count, "data": count},
                    matched={LEDGER_HOP: count, STORE_HOP: count},
                    # Its rows have times of the window before, and older ones than `late` reaches: two tables.
                    incidents=(("slice_grown", None, None, None),) * 2 if number else (),
                ),
            )
        )
    first_day = datetime.fromisoformat(batches[0][0]["at"])
    answer = naive.times(shop.bootstrap, shop.topic, first_day, first_day + timedelta(hours=1), len(batches[0]))
    return Outcome(
        truth=f"Here {len(batches[0])} and {len(batches[1])} orders were sent, each once, and all reached the store.",
        naive=(Naive(answer=answer, expected=f"{len(batches[0])} lost"),),
        windows=tuple(windows),
    )


@scenario(
    row=48,
    name="Rows that come when their day was judged",
    happens=(
        "A store gets rows with times of days that were judged already: a loader that runs twice, a test row, a backup "
        "that was put back. Others are only changed."
    ),
    made=(
        "Three days of orders, certified. Then rows of orders that were never made and second rows of orders, with "
        "times of the first and of the last of these days; some old rows are updated. One more day."
    ),
    why=(
        "A window reads what came since the window before, as far back as `late` says, and counts the rows of older "
        "days: one that has grown is read again. What counts is how often a key stands there now, so that a changed "
        "row is no new one."
    ),
    covered_by=("tests/integration/spark/test_late_unmatched_rows.py",),
)
def late_unmatched_rows(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    days = [orders(range(100 * day, 100 * day + lab.random.randint(20, 90)), day) for day in range(4)]
    for day, made in enumerate(days[:3]):
        _trade(shop, made)
        assert shop.day(day).state == CERTIFIED
    picked = [lab.random.sample(days[day], 3) for day in (0, 2)]
    shop.write("warehouse", [unmatched | {"id": f"S-{unmatched['id']}"} for unmatched, _, _ in picked])
    shop.write("warehouse", [repeated for _, repeated, _ in picked])
    shop.sql("update warehouse set region = 'XX' where id = any(%s)", [changed["id"] for _, _, changed in picked])
    _trade(shop, days[3])
    start = (BORN + 3 * DAY).isoformat()
    ledger, store = (
        int(shop.sql(f"select count(*) from {table} where at >= %s", start)[0][0]) for table in ("outbox", "warehouse")
    )
    verdicts = {f"S-{unmatched['id']}": ("unexpected", "not_in_source") for unmatched, _, _ in picked}
    verdicts |= {repeated["id"]: ("duplicate", "written_before_committed") for _, repeated, _ in picked}
    count = len(days[3])
    window = Window(
        label="the fourth day",
        judged=shop.day(3),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            found={STORE_HOP: verdicts},
            reason=f"{STORE_HOP}: 2 keys duplicate, 0 allowed; {STORE_HOP}: 2 keys unexpected, 0 allowed",
            incidents=(("slice_grown", None, None, None),),
        ),
    )
    return Outcome(
        truth=(
            f"Here {count} orders of the fourth day reached the store, and 4 rows came to it with times of the first "
            "and the third day: two of orders that were never made, two of orders that were there."
        ),
        naive=(Naive(answer=naive.rows(ledger, store), expected=naive.WELL),),
        windows=(window,),
    )


def _trade(shop: LabShop, made: list[Order]) -> None:
    """Take orders all the way."""
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
