"""Have originals come before and after they are replayed, and replays be copied with their headers (rows 37, 38)."""

from collections import Counter
from collections.abc import Sequence

from makewhole.compensation.plan_window import plan_window
from makewhole.model.plan import PLAN_HEADER
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes import script
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.consumer import Record, read_records
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

REPLAY_TESTS = ("tests/integration/spark/test_replays.py",)
_NEVER_PRODUCED, _LOST = ("missing", "never_produced"), ("missing", "lost_after_topic")


def _all(some: Sequence[Order], verdict: tuple[str, str]) -> Found:
    return {order["id"]: verdict for order in some}


def _planned(shop: LabShop) -> WindowContext:
    """The first day, judged, with a plan."""
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    return context


def _without_header(shop: LabShop) -> Naive:
    """Records that no replay's header marks, against the rows of the ledger."""
    records, rows = read_records(shop.bootstrap, shop.topic), shop.count("outbox")
    there = sum(not _is_marked(record) for record in records)
    answer = naive.NaiveAnswer(
        check="records without the header of a replay, against rows in the ledger",
        text=f"{there} records, {rows} rows",
        conclusion=naive.compared(rows, there),
    )
    return Naive(answer=answer, expected=naive.WELL)


def _is_marked(record: Record) -> bool:
    return PLAN_HEADER in dict(record.headers)


@scenario(
    row=37,
    name="The original comes between verdict and repair",
    happens="While a plan waits for approval, the producer sends some of what was missing, and a loader loads some.",
    made=(
        "Orders are not sent, others are lost at the store, and a plan is made for both; some of the first are sent "
        "and loaded, some of the second written again; the plan runs."
    ),
    why=(
        "Right before each chunk the topic and the store are asked once more. What has come is refused as `arrived`; "
        "the rest is sent, and every order stands in the store once."
    ),
    covered_by=(*REPLAY_TESTS, "tests/integration/compensation/execution/test_look_again.py"),
)
def arrived(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(40, 80)))
    chosen = lab.random.sample(made, 20)
    unsent, lost = chosen[:10], chosen[10:]
    sent = [order for order in made if order not in unsent]
    shop.write("outbox", made)
    shop.send(sent)
    shop.load()
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    context = _planned(shop)
    came, loaded = (some[: lab.random.randint(2, 8)] for some in (unsent, lost))
    shop.send(came)
    shop.load()
    shop.write("warehouse", loaded)
    shop.repair(context)
    shop.load()
    _require_copies(shop, made, twice=lost[len(loaded) :])
    _require_arrived(shop, came, loaded)
    window = Window(
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(sent), "data": len(sent)},
            matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent) - len(lost)},
            found={LEDGER_HOP: _all(unsent, _NEVER_PRODUCED), STORE_HOP: _all(lost, _LOST)},
        ),
    )
    assert sorted(shop.sql("select id from warehouse")) == sorted((order["id"],) for order in made)
    truth = (
        f"Here {len(unsent)} of {len(made)} orders are not sent and {len(lost)} lost at the store. "
        f"{len(came)} and {len(loaded)} of them come by themselves before the plan runs."
    )
    return Outcome(truth=truth, naive=(_script(shop, chosen, [*came, *loaded]),), windows=(window,))


def _require_copies(shop: LabShop, made: Sequence[Order], *, twice: Sequence[Order]) -> None:
    """A committed reader finds every order once, and those that were redelivered twice."""
    copies = Counter(record.key_text for record in read_records(shop.bootstrap, shop.topic))
    assert copies == Counter(order["id"] for order in (*made, *twice)), copies


def _require_arrived(shop: LabShop, came: Sequence[Order], loaded: Sequence[Order]) -> None:
    rows = shop.journal_sql("select key, outcome_reason from makewhole.action where outcome = 'refused'")
    refused = {key: Refusal.of_text(text).code for key, text in rows}
    assert refused == dict.fromkeys((order["id"] for order in (*came, *loaded)), RefusalCode.ARRIVED), refused


def _script(shop: LabShop, wanted: Sequence[Order], came: Sequence[Order]) -> Naive:
    """A script that sends its whole list, into a topic that already has what came by itself."""
    name = script.topic(shop)
    list(script.attempt(shop, name, came))
    list(script.attempt(shop, name, wanted))
    there = len(read_records(shop.bootstrap, name))
    answer = naive.NaiveAnswer(
        check="a script that sends what was missing when it looked",
        text=f"{there} records for {len(wanted)} orders",
        conclusion=naive.compared(len(wanted), there),
    )
    return Naive(answer=answer, expected=f"{len(came)} repeated")


@scenario(
    row=37,
    name="The original comes after it was replayed",
    happens="What never reached the topic is produced from the ledger. Then the producer sends it after all.",
    made=(
        "Orders are not sent, and produced by a plan; on the next day the producer sends them, and the loader, which "
        "appends, loads both copies."
    ),
    why=(
        "Original and replay are two copies, and never silently one. The second rows are moved aside; in the topic, "
        "where nothing can be taken out, the copies are contained."
    ),
    covered_by=REPLAY_TESTS,
)
def late_original(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(40, 80)))
    unsent = lab.random.sample(made, lab.random.randint(10, 20))
    sent = [order for order in made if order not in unsent]
    shop.write("outbox", made)
    shop.send(sent)
    shop.load()
    context = _planned(shop)
    shop.repair(context)
    shop.load()
    first = Window(
        label="the day",
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(sent), "data": len(sent)},
            matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent)},
            found={LEDGER_HOP: _all(unsent, _NEVER_PRODUCED)},
        ),
    )
    tomorrow = orders(range(1000, 1000 + lab.random.randint(20, 60)), 1)
    shop.send(unsent)
    _trade(shop, tomorrow)
    answer = _without_header(shop)
    second = _day_of_late_originals(shop, unsent, tomorrow)
    assert sorted(shop.sql("select id from warehouse")) == sorted((order["id"],) for order in (*made, *tomorrow))
    truth = f"Here {len(unsent)} of {len(made)} orders are produced from the ledger, and their originals come late."
    return Outcome(truth=truth, naive=(answer,), windows=(first, second))


def _day_of_late_originals(shop: LabShop, late: Sequence[Order], tomorrow: Sequence[Order]) -> Window:
    """The next day, whose offsets hold replays and originals; repaired."""
    context = shop.judge_and_ask_the_gate(1)
    assert plan_window(context).plan is not None
    shop.repair(context)
    there, twice = 2 * len(late) + len(tomorrow), _all(late, ("duplicate", "late_original"))
    return Window(
        label="the next day",
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": there + 1, "data": there, "control": 1},
            matched={LEDGER_HOP: len(tomorrow), STORE_HOP: len(tomorrow)},
            found={LEDGER_HOP: twice, STORE_HOP: twice},
        ),
    )


@scenario(
    row=38,
    name="A copy of a replay that keeps its headers",
    happens="Replayed records are sent again as they are, headers included: a dead-letter redrive does.",
    made=(
        "A loss is redelivered and loaded; two days later a plain producer sends some of the redelivered records once "
        "more, with keys, values, times and headers."
    ),
    why=(
        "A replay is known by the offset at which the journal has it written. A header can be copied: what stands "
        "elsewhere is a duplicate like any other."
    ),
    covered_by=(*REPLAY_TESTS, "tests/integration/compensation/execution/test_replayed_positions.py"),
)
def copied_replay(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(40, 80)))
    lost = lab.random.sample(made, lab.random.randint(10, 20))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    context = _planned(shop)
    shop.repair(context)
    shop.load()
    count, copied = len(made), lost[: lab.random.randint(3, 8)]
    first = Window(
        label="the day of the loss",
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count - len(lost)},
            found={STORE_HOP: _all(lost, _LOST)},
        ),
    )
    second, third = (lab.random.randint(20, 60) for _ in range(2))
    _trade(shop, orders(range(1000, 1000 + second), 1))
    next_day = Window(
        label="the next day, which has the replays",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(lost) + second + 1, "data": len(lost) + second, "control": 1},
            matched={LEDGER_HOP: second, STORE_HOP: len(lost) + second},
        ),
    )
    _copy(shop, copied)
    _trade(shop, orders(range(2000, 2000 + third), 2))
    answer = _without_header(shop)
    day_of_copies = Window(
        label="the day of the copies",
        judged=shop.day(2),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(copied) + third, "data": len(copied) + third},
            matched={LEDGER_HOP: third, STORE_HOP: third},
            found={
                LEDGER_HOP: _all(copied, ("duplicate", "retry_without_idempotence")),
                STORE_HOP: _all(copied, ("duplicate", "upstream_duplicate")),
            },
            incidents=(("slice_grown", None, None, None),),  # the store's rows with times of the first day
            reason="",
        ),
    )
    truth = (
        f"Here {len(lost)} of {count} orders are redelivered, and {len(copied)} of the redelivered records sent again."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(first, next_day, day_of_copies))


def _trade(shop: LabShop, made: Sequence[Order]) -> None:
    shop.write("outbox", made)
    shop.send(made)
    shop.load()


def _copy(shop: LabShop, wanted: Sequence[Order]) -> None:
    """Send the replays of these orders again, exactly as they stand in the topic."""
    keys = {order["id"] for order in wanted}
    replays = [record for record in read_records(shop.bootstrap, shop.topic) if _is_marked(record)]
    client = shop.producer()
    for record in (replay for replay in replays if replay.key_text in keys):
        client.produce(
            shop.topic,
            record.value,
            record.key,
            partition=record.partition,
            headers=list(record.headers),
            timestamp=record.timestamp_ms,
        )
    assert client.flush(30) == 0
