"""Have brokers cut off records after a window was opened and before it was read (row 9, from the window's side)."""

from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.truncation import _truncate
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found


@scenario(
    row=9,
    name="Records are cut off between the freezing of their offsets and the reading",
    happens=(
        "A window was opened: its offsets are frozen. Before it is read, an unclean election cuts off its last "
        "records, and others take their offsets."
    ),
    made=(
        "`min.insync.replicas=1`; both followers are killed, orders are sent and the window is opened; the leader is "
        "killed, the followers come back, unclean election; other records are sent; only now the window is read."
    ),
    why=(
        "The window keeps the leader epochs that its offsets had when they were frozen. Other records at the same "
        "offsets are not taken for them: what was never read is partial, and is in no window. The next window reads "
        "what took its place."
    ),
)
def cut_off_before_it_is_read(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(topic={"min_insync_replicas": 1})
    kept, lost, came = (lab.random.randint(5, 100) for _ in range(3))
    first_day, new = orders(range(kept + lost)), orders(range(500, 500 + came), day=1)
    cut = first_day[kept:]
    shop.write("outbox", [*first_day, *new])
    shop.send(first_day[:kept], settings={"acks": "all"})
    opened: list[WindowContext] = []

    def while_alone() -> None:
        shop.send(cut, settings={"acks": "all"})
        shop.load()
        opened.append(shop.open())

    _truncate(lab, while_alone)
    shop.send(new)
    shop.write("warehouse", new)
    return Outcome(
        truth=f"Here {lost} orders were cut off unread, and {came} other records were written from there on.",
        naive=(),
        windows=(
            Window(label="before", judged=shop.close(opened[0]), expected=_partial(kept, cut)),
            Window(
                label="after",
                judged=shop.day(1),
                expected=Judged(
                    state=WindowState.CERTIFIED.value,
                    accounting={"span": came, "data": came},
                    matched={LEDGER_HOP: came, STORE_HOP: came},
                    incidents=(("leader_changed", 0, kept, kept + came),),
                ),
            ),
        ),
    )


def _partial(kept: int, cut: list[Order]) -> Judged:
    """Whether the topic had them cannot be known: neither what became of them, nor whether the store may have them."""
    unknown: Found = {order["id"]: ("undecidable", "expired") for order in cut}
    lost = len(cut)
    return Judged(
        state=WindowState.NOT_KNOWN.value,
        accounting={"span": kept + lost, "data": kept, "expired": lost},
        matched={LEDGER_HOP: kept, STORE_HOP: kept},
        found={LEDGER_HOP: unknown, STORE_HOP: unknown},
        incidents=(("truncated", 0, kept, kept + lost),),
        reason=f"partial: {lost} offsets of orders/0 ([{kept}, {kept + lost})) were deleted before they could be read",
    )
