"""Compare a topic with an outbox and a store that are older than its log (rows 8 and 69, at the first window)."""

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

BASELINE_TESTS = ("tests/integration/spark/test_baseline.py",)


def _new_orders(lab: Lab, *, unsent: int) -> list[Order]:
    """Orders that are younger than the topic, of which the first ones but one are not sent."""
    new = orders(range(500, 500 + lab.random.randint(20, 100)))
    lab.shop.write("outbox", new)
    lab.shop.send([new[0], *new[1 + unsent :]])
    lab.shop.load()
    return new


@scenario(
    row=8,
    name="The outbox is older than what retention left of the topic",
    happens=(
        "An outbox goes back a year and a topic holds a week. Compared as they are, every older row is lost, and every "
        "older row of the store has no source."
    ),
    made="Orders on their whole way; Kafka forgets their records; more orders, one of which is not sent.",
    why=(
        "Judging begins where both sides reach back. What is older than the first record that is left is counted and "
        "shown as `before_baseline`, and neither repaired nor moved aside; what is younger is judged as ever."
    ),
    covered_by=BASELINE_TESTS,
)
def older_than_retention(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(start=None)
    old = orders(range(lab.random.randint(20, 100)))
    shop.write("outbox", old)
    shop.send(old)
    shop.load()
    shop.delete_records({0: len(old)})
    new = _new_orders(lab, unsent=1)
    sent = len(new) - 1
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": sent, "data": sent},
            matched={LEDGER_HOP: sent, STORE_HOP: sent},
            found={LEDGER_HOP: {new[1]["id"]: ("missing", "never_produced")}},
            before_baseline={LEDGER_HOP: len(old), STORE_HOP: len(old)},
            incidents=(("beginning_gone", None, None, None),),
            reason="",
        ),
    )
    truth = f"Here {len(old)} orders are older than the log, and 1 of {len(new)} younger ones was not sent."
    return Outcome(truth=truth, naive=(), windows=(window,))


@scenario(
    row=8,
    name="The outbox is older than its topic",
    happens="A topic was made for an outbox that had been there before. Lost, or from before the topic?",
    made="Rows in the outbox alone, then orders on their whole way; afterwards the file says `start:`.",
    why=(
        "A log that begins at offset 0 has lost nothing to retention, and cannot say why older rows have no record. "
        "That is a question for a person: the window is not known, and its reason says which line to write."
    ),
    covered_by=BASELINE_TESTS,
)
def older_than_the_topic(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(start=None)
    old = orders(range(lab.random.randint(20, 100)))
    shop.write("outbox", old)
    new = _new_orders(lab, unsent=0)
    count = len(new)
    asked = Window(
        label="without `start:`",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            found={LEDGER_HOP: {order["id"]: ("undecidable", "older_than_log") for order in old}},
            incidents=(("baseline_unknown", None, None, None),),
            reason=f"not proven: on outbox→orders {len(old)} keys are older",
        ),
    )
    shop.describe(start=new[0]["at"])
    answered = Window(
        label="with it",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            before_baseline={LEDGER_HOP: len(old)},
        ),
    )
    truth = f"Here {len(old)} orders are older than the topic."
    return Outcome(truth=truth, naive=(), windows=(asked, answered))


@scenario(
    row=69,
    name="A log without its beginning, stamped in seconds",
    happens=(
        "A producer stamps its records in seconds, where Kafka takes milliseconds: they are of January 1970. Retention "
        "took the beginning of the topic, and what is left seems to reach back for half a century: rows of last year "
        "have no record there, and are sent again."
    ),
    made=(
        "Orders on their whole way, stamped in seconds; Kafka forgets the first of them. `missing: produce` from the "
        "outbox; afterwards the file says `start:`."
    ),
    why=(
        "A stamp from before there was Kafka says nothing of when a log begins. What one end alone has is undecidable, "
        "nothing is sent, and the reason asks for the one line that settles it."
    ),
    covered_by=("tests/integration/spark/test_times_that_cannot_be.py",),
)
def stamped_in_seconds(lab: Lab) -> Outcome:
    produce = {"compensation": "{missing: produce}"}
    shop = lab.shop.open_shop(start=None, ledger_hop=produce)
    old, new = orders(range(lab.random.randint(20, 60))), orders(range(500, 500 + lab.random.randint(20, 60)))
    count = len(new)
    shop.write("outbox", [*old, *new])
    shop.send_stamped((order, milliseconds(order["at"]) // 1000) for order in [*old, *new])
    shop.load()
    shop.delete_records({0: len(old)})
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert len(shop.read()) == count
    unknown = {order["id"]: ("undecidable", "older_than_log") for order in old}
    asked = Window(
        label="without `start:`",
        judged=shop.certify_and_collect(context),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            found={LEDGER_HOP: unknown, STORE_HOP: unknown},
            incidents=(("baseline_unknown", None, None, None), ("beginning_gone", None, None, None)),
            reason=f"not proven: on outbox→orders, orders→warehouse {2 * len(old)} keys are older",
        ),
    )
    shop.describe(start=new[0]["at"], ledger_hop=produce)
    answered = Window(
        label="with it",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            before_baseline={LEDGER_HOP: len(old), STORE_HOP: len(old)},
            incidents=(("beginning_gone", None, None, None),),
        ),
    )
    truth = f"Here {len(old)} of {len(old) + count} records are gone; every order had one, and is in the store."
    return Outcome(truth=truth, naive=(), windows=(asked, answered))
