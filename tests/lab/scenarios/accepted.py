"""Accept wrong records, change a row of one of them afterwards, and take the word back (row 67)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Judged, judged, outcomes
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.acceptances import accepted, opened_again, revoked
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=67,
    name="Wrong records that a person accepts",
    happens=(
        "Some amounts were sent wrongly. What is in a topic cannot be changed, so the day stays open for ever; who "
        "raises the limit of the alarm instead does not hear of the wrong records of the next day."
    ),
    made=(
        "Some records, and their rows, have another amount than the ledger. `makewhole accept --all` for the first "
        "day; then a row of an accepted order is changed, and a second day has wrong records, too; the first day is "
        "accepted again, and the acceptance is revoked."
    ),
    why=(
        "An acceptance is of these findings, by a name, with a reason, and signed: the certificate counts them. A "
        "row that changes opens its finding again and revokes the certificate, and so does `--revoke`. What it says "
        "holds for no other window."
    ),
    covered_by=("tests/integration/spark/test_accepted.py", "tests/e2e/test_accepted.py"),
)
def accepted_by_a_person(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(20, 60)))
    keys = _trade(lab, made, 5)
    context, closed = shop.whole_way()
    day = _Day(shop=shop, context=context, made=made, keys=keys)
    windows = [day.window("judged", closed, open=5)]
    word, closed = accepted(shop)
    windows.append(day.window("accepted", closed, accepted=5))
    more = orders(range(100, 120), 1)
    second = _trade(lab, more, 3)
    answer = _below_the_limit(shop, more, limit=len(keys))
    shop.sql("update warehouse set amount = 5 where id = %s", keys[0])
    next_day = shop.judge_and_ask_the_gate(1)
    (again,) = opened_again(shop)
    windows.append(day.window("when a row was changed", again.closed, accepted=4, open=1))
    windows.append(_of_next_day(shop, next_day, more, second, keys[0]))
    shop.sql("update warehouse set amount = 77 where id = %s", keys[0])
    _, closed = accepted(shop, keys[0])
    windows.append(day.window("when that was undone, and accepted again", closed, accepted=5))
    closed = revoked(shop, word)
    windows.append(day.window("revoked", closed, accepted=1, open=4))
    truth = f"Here {len(keys)} of {len(made)} records of the first day are wrong, and {len(second)} of the second."
    return Outcome(truth=truth, naive=(answer,), windows=tuple(windows))


@dataclass(frozen=True, kw_only=True)
class _Day:
    """The first day, of whose orders these keys were sent wrongly."""

    shop: LabShop
    context: WindowContext
    made: Sequence[Order]
    keys: Sequence[str]

    def window(self, label: str, closed: ClosedWindow, **counts: int) -> Window:
        """Return the window as it is now, with so many findings of each outcome expected."""
        is_whole = "open" not in counts
        sentence = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        expected = Judged(
            state=(WindowState.CERTIFIED if is_whole else WindowState.GAPS).value,
            accounting={"span": len(self.made), "data": len(self.made)},
            matched={LEDGER_HOP: len(self.made) - len(self.keys), STORE_HOP: len(self.made)},
            found={LEDGER_HOP: dict.fromkeys(self.keys, ("mismatched", "value_differs"))},
            reason=None if is_whole else "",
            messages=(
                f"{LEDGER_HOP}: {sentence}",
                *((f"certified, with {counts['accepted']} accepted",) if is_whole else ()),
            ),
        )
        return Window(label=label, judged=_judged(self.shop, self.context, closed), expected=expected)


def _judged(shop: LabShop, context: WindowContext, closed: ClosedWindow) -> Judged:
    """Return what is said of a window, with the number in its certificate."""
    messages = outcomes(shop.journal, context)
    if closed.certificate is not None and closed.certificate.accepted:
        messages = (*messages, f"certified, with {closed.certificate.accepted} accepted")
    return replace(judged(shop.journal, context, closed), messages=messages)


def _of_next_day(
    shop: LabShop, context: WindowContext, made: Sequence[Order], keys: Sequence[str], changed: str
) -> Window:
    """Return the second day's window, which sees the row that was changed as well."""
    wrong = ("mismatched", "value_differs")
    expected = Judged(
        state=WindowState.GAPS.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made) - len(keys), STORE_HOP: len(made)},
        found={LEDGER_HOP: dict.fromkeys(keys, wrong), STORE_HOP: {changed: wrong}},
        reason="",
        messages=(f"{STORE_HOP}: 1 open", f"{LEDGER_HOP}: {len(keys)} open"),
    )
    return Window(label="the second day", judged=_judged(shop, context, shop.certify(context)), expected=expected)


def _trade(lab: Lab, made: Sequence[Order], wrong: int) -> list[str]:
    """Take a day's orders all the way, so many of them with another amount than the ledger has; return their keys."""
    shop, chosen = lab.shop, lab.random.sample(made, wrong)
    shop.write("outbox", made)
    shop.send([order | {"amount": "77.00"} if order in chosen else order for order in made])
    shop.load()
    return [order["id"] for order in chosen]


def _below_the_limit(shop: LabShop, made: Sequence[Order], limit: int) -> Naive:
    """Return what an alarm makes of a day whose limit was raised to what is known to stay."""
    query = (
        "select count(*) from outbox join warehouse using (id) where outbox.amount <> warehouse.amount and id = any(%s)"
    )
    wrong = int(shop.sql(query, [order["id"] for order in made])[0][0])
    return Naive(
        answer=naive.NaiveAnswer(
            check=f"an alarm for more than {limit} wrong amounts a day, since {limit} of the first day stay",
            text=f"{wrong} wrong on the second day",
            conclusion=naive.WELL if wrong <= limit else f"{wrong} wrong",
        ),
        expected=naive.WELL,
    )
