"""Make consumers that come late or never: one far behind, one at a bad record, one not there (rows 36, 42, 43)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from makewhole.journal.database import connect
from makewhole.journal.results import handover_keys
from makewhole.model.window import WindowState
from makewhole_spark.reconcile import judge_window
from tests.lab import naive
from tests.lab.judged import Judged, judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

_NIGHT = timedelta(hours=25)
_GROUP = "loader-lab"
_JOURNAL_FINDINGS = 20


@scenario(
    row=36,
    name="A loader that is far behind",
    happens=(
        "The loader is so far behind that more keys are on their way to the store than the journal keeps findings of a "
        "window. It catches up and commits, but some of these never come to stand in the store."
    ),
    made=(
        f"Of a window's findings the journal keeps {_JOURNAL_FINDINGS} instead of a million. The loader reads a few "
        "orders of the first day and the rest on the second; some rows are deleted of which the journal kept nothing."
    ),
    why=(
        "What is handed over comes from the results themselves, and not from the findings that the journal keeps of "
        "them. It is counted in the certificate, and the next window judges every key of it."
    ),
    covered_by=("tests/integration/spark/test_windows.py",),
)
def far_behind(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(hop={"consumer_group": shop.group})
    loaded, behind, later = lab.random.randint(5, 20), lab.random.randint(60, 120), lab.random.randint(10, 40)
    made, following = orders(range(loaded + behind)), orders(range(1000, 1000 + later), 1)
    shop.write("outbox", made)
    shop.send(made[:loaded])
    shop.load()
    shop.send(made[loaded:])
    first, kept = _judged_with_few_findings(lab)
    beyond = [order for order in made[loaded:] if order["id"] not in kept]
    lost = lab.random.sample(beyond, lab.random.randint(3, 9))
    shop.write("outbox", following)
    shop.send(following)
    shop.load()
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    return Outcome(
        truth=(
            f"Here {behind} of {loaded + behind} orders are on their way at the end of the first day, and {len(lost)} "
            "of them are lost on the second."
        ),
        naive=(Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),),
        windows=(
            Window(
                label="the first day",
                judged=first,
                expected=Judged(
                    state=WindowState.CERTIFIED.value,
                    accounting={"span": len(made), "data": len(made)},
                    matched={LEDGER_HOP: len(made), STORE_HOP: loaded},
                    found=_at_the_store(made[loaded:], "pending", "not_yet_consumed"),
                ),
            ),
            Window(
                label="the second day",
                judged=shop.day(1),
                expected=Judged(
                    state=WindowState.GAPS.value,
                    accounting={"span": later, "data": later},
                    matched={LEDGER_HOP: later, STORE_HOP: behind + later - len(lost)},
                    found=_at_the_store(lost, "missing", "committed_before_written"),
                    reason="",
                ),
            ),
        ),
    )


def _judged_with_few_findings(lab: Lab) -> tuple[Judged, Found]:
    """Judge the first day; its findings are the keys that it handed over. Return those that the journal kept, too."""
    shop = lab.shop
    with lab.patch.context() as limit:
        limit.setattr(judge_window, "_JOURNAL_FINDINGS", _JOURNAL_FINDINGS)
        context = shop.judge_and_ask_the_gate()
    closed = shop.certify(context)
    said = judged(shop.journal, context, closed)
    kept, handed_over = said.found[STORE_HOP], _handed_over(shop, context.window.number)
    assert len(kept) == _JOURNAL_FINDINGS
    assert closed.certificate is not None, closed.reason
    assert closed.certificate.body["handed_over"]["keys"] == len(handed_over)
    return replace(said, found={STORE_HOP: dict.fromkeys(handed_over, ("pending", "not_yet_consumed"))}), kept


def _handed_over(shop: LabShop, number: int) -> list[str]:
    with connect(shop.journal) as journal:
        pieces = handover_keys.handovers(journal, shop.pipeline.name, number, STORE_HOP)
        return [key for piece in pieces for (_, key, _, _) in piece]


def _at_the_store(some: Sequence[Order], verdict: str, cause: str) -> dict[str, Found]:
    return {STORE_HOP: {order["id"]: (verdict, cause) for order in some}}


@scenario(
    row=42,
    name="A partition stands at one bad record",
    happens="The loader dies at one record, starts again, and dies there again. Everything behind it waits.",
    made="The group's offset stays at one order for two nights; orders go on coming.",
    why=(
        "What the group has not reached is handed over by name and counted, and the group that stands is reported. "
        "Past `pending.max_age` it is missing, and not sent again: it still stands in front of the loader."
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
    verdicts = {order["id"]: ("missing", "not_consumed") for order in made[before:]}
    verdicts |= {order["id"]: ("pending", "not_yet_consumed") for order in following}
    second = Window(
        label="the second night",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": later, "data": later},
            matched={LEDGER_HOP: later, STORE_HOP: 0},
            found={STORE_HOP: verdicts},
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
                expected=_where_the_group_stands_is_not_known(
                    made,
                    loaded,
                    "group_unknown",
                    "not proven: group `loader-lab-mistyped` has committed no offset in orders/0, ",
                ),
            ),
        ),
    )


@scenario(
    row=56,
    name="The offsets of a consumer group come from another cluster",
    happens=(
        "The group's offsets were restored from a cluster whose log was longer. What it has committed lies behind the "
        "end of this log: by its offset everything was read, long ago."
    ),
    made="Some orders do not reach the store; the group's offset is set far behind the end of the log.",
    why=(
        "An offset that the log does not have says nothing. The window is not known, and its reason names the group, "
        "the offset and where the log ends. Nothing is sent again: what the consumer does is a matter of its "
        "`auto.offset.reset`, and it may read all of it by itself."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def offset_behind_the_end(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"consumer_group": _GROUP})
    loaded, lost, beyond = (lab.random.randint(5, 40) for _ in range(3))
    made = orders(range(loaded + lost))
    count = len(made)
    shop.trade(made, unloaded=made[loaded:])
    shop.commit_group(_GROUP, count + beyond)
    return Outcome(
        truth=f"Here {lost} of {count} orders were never loaded, and the group's offset is {beyond} behind the end.",
        naive=(Naive(answer=naive.records(shop.bootstrap, shop.topic, count), expected=naive.WELL),),
        windows=(
            Window(
                judged=shop.day(),
                expected=_where_the_group_stands_is_not_known(
                    made,
                    loaded,
                    "group_out_of_range",
                    f"not proven: group `{_GROUP}` has committed offset {count + beyond} of orders/0, which is ",
                ),
            ),
        ),
    )


def _where_the_group_stands_is_not_known(made: Sequence[Order], loaded: int, incident: str, reason: str) -> Judged:
    """Return a window of which the first orders were loaded, and nothing shows whether the others will be."""
    count = len(made)
    return Judged(
        state=WindowState.NOT_KNOWN.value,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: loaded},
        found={STORE_HOP: {order["id"]: ("pending", "not_yet_consumed") for order in made[loaded:]}},
        incidents=((incident, 0, 0, count),),
        reason=reason,
    )
