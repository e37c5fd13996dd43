"""Leave gaps of an older window open while newer windows are certified (row 54)."""

from dataclasses import replace

from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_OBSERVED = {"consumer_group": "loader-lab", "compensation": "{missing: report, duplicate: report}"}


@scenario(
    row=54,
    name="A loss that is not repaired, and days that go well after it",
    happens=(
        "A night ends with gaps, no one acts, and the nights after it are in order. A check that looks at the day it "
        "runs for is green again the next morning."
    ),
    made=(
        "Some orders of the second day never reach the store, nothing is repaired; two more days are certified. Then "
        "the loader brings what was lost, and the second day is judged again."
    ),
    why=(
        "What a window leaves open stays in sight until a certificate of that window stands: `makewhole windows`, the "
        "run's result and every newer certificate say how many older windows and findings are open, and since when."
    ),
    covered_by=("tests/integration/window/test_older_windows.py",),
)
def left_open(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop=_OBSERVED)
    days = [orders(range(1000 * day, 1000 * day + lab.random.randint(10, 50)), day) for day in range(4)]
    lost = lab.random.sample(days[1], lab.random.randint(2, 9))
    still_open = f"1 older window is open, since {BORN + DAY:%Y-%m-%d %H:%M} UTC (window 2): {len(lost)} findings"
    first = Window(label="the first day", judged=_traded(shop, days, 0), expected=_expected(days[0]))
    second = Window(label="the second", judged=_traded(shop, days, 1, lost), expected=_expected(days[1], lost))
    later = [
        Window(label=label, judged=_traded(shop, days, day), expected=_expected(days[day], messages=(still_open,)))
        for day, label in ((2, "the third"), (3, "the fourth"))
    ]
    answer = _counted_today(shop, 3)
    shop.write("warehouse", lost)
    again = Window(
        label="the second, judged again", judged=_with_messages(shop, shop.day(1)), expected=_expected(days[1])
    )
    return Outcome(
        truth=f"Here {len(lost)} of {len(days[1])} orders of the second day are lost, and none of the days after it.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second, *later, again),
    )


def _traded(shop: LabShop, days: list[list[Order]], day: int, lost: list[Order] | None = None) -> Judged:
    """Take a day's orders all the way, but for those that are lost; judge the day."""
    shop.trade(days[day], unloaded=lost or [])
    shop.commit_group(_OBSERVED["consumer_group"], sum(len(made) for made in days[: day + 1]))
    return _with_messages(shop, shop.day(day))


def _with_messages(shop: LabShop, answer: Judged) -> Judged:
    """Add what `makewhole windows` says of older windows beneath the newest."""
    shown = CliRunner().invoke(app, ["windows", "shop"], env={"COLUMNS": "250"}, catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    lines = [line.strip() for line in shown.stdout.splitlines()]
    return replace(answer, messages=tuple(line for line in lines if " older window" in line))


def _expected(made: list[Order], lost: list[Order] | None = None, messages: tuple[str, ...] = ()) -> Judged:
    count, gone = len(made), lost or []
    missing = {order["id"]: ("missing", "committed_before_written") for order in gone}
    return Judged(
        state=(WindowState.GAPS if gone else WindowState.CERTIFIED).value,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: count - len(gone)},
        found={STORE_HOP: missing} if missing else {},
        reason=f"{STORE_HOP}: {len(gone)} keys missing, 0 allowed" if gone else None,
        messages=messages,
    )


def _counted_today(shop: LabShop, day: int) -> naive.NaiveAnswer:
    """A nightly check of the day that has ended."""
    start = (BORN + day * DAY).isoformat()
    ledger, store = (
        int(shop.sql(f"select count(*) from {table} where at >= %s", start)[0][0]) for table in ("outbox", "warehouse")
    )
    return naive.rows(ledger, store)
