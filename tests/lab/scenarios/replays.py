"""Disturb the repair of a loss (rows 28 to 32)."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.kafka import replay
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, window_context
from tests.lab import naive, raw
from tests.lab.judged import Judged
from tests.lab.processes import script
from tests.lab.processes.runner import Runner
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.lab.shop import LabShop
from tests.world.consumer import read_records
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

_SLOWLY = {"limits": "{share: 1.0, records_per_second: 5}"}
_CHUNK = 5
_IMPATIENT_SECONDS = 2.0
CRASH_TESTS = (
    "tests/integration/compensation/execution/test_kills.py",
    "tests/unit/compensation/execution/test_model.py",
)


def _lost(lab: Lab) -> tuple[list[Order], list[Order]]:
    """A day of orders, all sent, and those that the store has lost: several chunks of a plan."""
    shop = lab.shop.open_shop(compensation=_SLOWLY)
    made = orders(range(lab.random.randint(40, 80)))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    lost = lab.random.sample(made, lab.random.randint(12, 24))
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    return made, lost


def _repaired(
    shop: LabShop, context: WindowContext, made: Sequence[Order], lost: Sequence[Order], label: str = ""
) -> Window:
    """The window, when the loader has loaded what was redelivered: each of the lost orders once."""
    _require_sent_once(shop, lost)
    shop.load()
    return Window(
        label=label,
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(lost)},
            found={STORE_HOP: _missing(lost)},
        ),
    )


def _missing(lost: Sequence[Order]) -> Found:
    return {order["id"]: ("missing", "lost_after_topic") for order in lost}


def _require_sent_once(shop: LabShop, lost: Sequence[Order]) -> None:
    """A committed reader finds every lost order twice: the original and one replay."""
    wanted = {order["id"] for order in lost}
    copies = Counter(key for record in read_records(shop.bootstrap, shop.topic) if (key := record.key_text) in wanted)
    assert copies == dict.fromkeys(wanted, 2)


@scenario(
    row=28,
    name="A task that is believed dead and lives on",
    happens="The heartbeat of a repairing task is lost, its retry begins, and then the first attempt wakes up.",
    made="SIGSTOP of the attempt in mid-plan; the retry does the rest; SIGCONT.",
    why="The retry raises the lease's epoch and fences the producer: what the first attempt still does is refused.",
    covered_by=CRASH_TESTS,
)
def task_lives_on(lab: Lab) -> Outcome:
    made, lost = _lost(lab)
    shop = lab.shop
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    with Runner(context) as first:
        shop.wait_for_chunks(plan.id, lab.random.randint(1, len(lost) // _CHUNK - 1))
        first.pause()
        compensate_window(context, lambda _: None)
        first.resume()
        ended = first.outcome()
    assert ended in ("LeaseLostError", "TransientError", "FencedError"), ended
    name = script.topic(shop)
    asleep = script.attempt(shop, name, lost)
    for _ in range(lab.random.randint(1, len(lost) - 1)):
        next(asleep)
    list(script.attempt(shop, name, lost))
    list(asleep)
    answer = Naive(answer=script.answer(shop, name, len(lost)), expected=f"{len(lost)} repeated")
    truth = f"Here {len(lost)} of {len(made)} orders are lost at the store, and redelivered in chunks of {_CHUNK}."
    return Outcome(truth=truth, naive=(answer,), windows=(_repaired(shop, context, made, lost),))


@scenario(
    row=29,
    name="The same repair, asked for again and again",
    happens="A run is triggered while another covers the same window, a task is cleared, an old plan is run late.",
    made=(
        "Two revisions of a window are judged and planned; the second is repaired by two runners at once, then once "
        "more; last of all the first revision's plan is run."
    ),
    why="A plan is done once, whoever runs it. Freezing one supersedes that of an earlier revision.",
    covered_by=CRASH_TESTS,
)
def asked_again(lab: Lab) -> Outcome:
    made, lost = _lost(lab)
    shop = lab.shop
    earlier, later = shop.judge_and_ask_the_gate(), shop.judge_and_ask_the_gate()
    superseded, plan = plan_window(earlier).plan, plan_window(later).plan
    assert superseded is not None
    assert plan is not None
    with Runner(later) as runner:
        shop.wait_for_chunks(plan.id, lab.random.randint(0, 2))
        with suppress(TransientError):
            compensate_window(later, lambda _: None)
        ended = runner.outcome()
    assert ended in ("done", "LeaseLostError", "TransientError", "FencedError"), ended
    compensate_window(later, lambda _: None)
    compensate_window(later, lambda _: None)
    try:
        compensate_window(earlier, lambda _: None)
    except RefusedError as error:
        assert f"superseded by plan {plan.id}" in str(error), error
    else:
        raise AssertionError("the superseded plan ran")
    name = script.topic(shop)
    for _ in range(3):
        list(script.attempt(shop, name, lost))
    answer = Naive(answer=script.answer(shop, name, len(lost)), expected=f"{2 * len(lost)} repeated")
    truth = f"Here {len(lost)} of {len(made)} orders are lost at the store; their repair is asked for five times."
    return Outcome(truth=truth, naive=(answer,), windows=(_repaired(shop, later, made, lost),))


@scenario(
    row=30,
    name="A repair whose commit got no answer",
    happens="The broker that coordinates the replay's transaction stops answering in the middle of the commit.",
    made=(
        "A proxy holds the commit of one of the chunks until that broker is frozen, or lets it through and loses the "
        "answer (by the seed); the broker wakes later."
    ),
    why="An unknown outcome is never assumed: a new producer fences the old one, and the marker says what was done.",
    covered_by=("tests/integration/compensation/execution/test_unknown_commit.py",),
)
def no_answer_to_the_commit(lab: Lab) -> Outcome:
    made, lost = _lost(lab)
    shop = lab.shop
    judged = shop.judge_and_ask_the_gate()
    plan = plan_window(judged).plan
    assert plan is not None
    lab.through_proxy()
    context = window_context(judged.window)
    lab.patch.setattr(replay, "_TIMEOUT_SECONDS", _IMPATIENT_SECONDS)
    fault = lab.random.choice([Fault.HOLD, Fault.LOSE_ANSWER])
    rule = lab.cluster.proxy.add(Rule(api=Api.END_TXN, fault=fault, first=lab.random.randint(1, len(lost) // _CHUNK)))
    with ThreadPoolExecutor() as aside:
        frozen = aside.submit(_freeze_the_coordinator, lab, rule, f"replay-{plan.id}-orders")
        shop.repair(context)
        node = frozen.result()
    lab.cluster.resume(node)
    lab.cluster.wait_until_healed()
    name = script.topic(shop)
    _script_without_answer(lab, name, lost)
    answer = Naive(answer=script.answer(shop, name, len(lost)), expected=f"{len(lost)} repeated")
    truth = f"Here {len(lost)} of {len(made)} orders are lost at the store, and redelivered in chunks of {_CHUNK}."
    return Outcome(truth=truth, naive=(answer,), windows=(_repaired(shop, context, made, lost),))


def _freeze_the_coordinator(lab: Lab, rule: Rule, transactional_id: str) -> int:
    rule.wait_until_hit()
    node = raw.coordinator(lab.cluster.port(lab.cluster.running()[0]), transactional_id)
    lab.cluster.pause(node)
    rule.release()
    return node


def _script_without_answer(lab: Lab, name: str, lost: Sequence[Order]) -> None:
    """Its first commit is held until it has given up on it and committed once more."""
    held = lab.cluster.proxy.add(Rule(api=Api.END_TXN, fault=Fault.HOLD))
    script.transaction(lab.cluster.proxied_bootstrap, name, lost, _IMPATIENT_SECONDS)
    held.release()
    lab.cluster.wait(
        "both of the script's commits", lambda: len(read_records(lab.shop.bootstrap, name)) == 2 * len(lost)
    )


@scenario(
    row=31,
    name="A repair that comes too late",
    happens="Between plan and repair the application writes newer versions of some rows, and erases others.",
    made="Rows are lost and changed in the store and a plan is made; some of its keys are updated or deleted; it runs.",
    why="Every write is guarded by version and before-image: what is newer stays, what was erased stays away.",
    covered_by=("tests/integration/compensation/execution/test_remedies.py",),
)
def too_late(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(
        is_upsert=True, has_version=True, hop={"compensation": "{missing: upsert, mismatched: upsert}"}
    )
    made = [{**order, "version": 1} for order in orders(range(lab.random.randint(40, 80)))]
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    chosen = lab.random.sample(made, 20)
    lost, changed = chosen[:10], chosen[10:]
    shop.sql("delete from warehouse where id = any(%s)", _ids(lost))
    shop.sql("update warehouse set amount = amount + 1 where id = any(%s)", _ids(changed))
    context = shop.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    came, newer, erased = lost[:3], changed[:3], changed[3:6]
    shop.write("warehouse", [{**order, "version": 2, "amount": "0.25"} for order in came])
    shop.sql("update warehouse set version = 2, amount = 0.25 where id = any(%s)", _ids(newer))
    shop.sql("delete from warehouse where id = any(%s)", _ids(erased))
    answer = _overwritten(shop, chosen, newer=came + newer, erased=erased)
    compensate_window(context, lambda _: None)
    assert shop.rows(_ids(newer + came)) == dict.fromkeys(_ids(newer + came), (2, "0.25"))
    assert shop.rows(_ids(erased)) == {}
    verdicts = {order["id"]: ("missing", "lost_after_topic") for order in lost}
    verdicts |= {order["id"]: ("mismatched", "value_differs") for order in changed}
    window = Window(
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - 20},
            found={STORE_HOP: verdicts},
            reason="",
        ),
    )
    outcomes = shop.outcomes(context)
    repaired = dict.fromkeys(_ids(lost[3:] + changed[6:]), "repaired")
    assert outcomes == dict.fromkeys(_ids(came + newer + erased), "refused") | repaired, outcomes
    truth = (
        "Here 10 rows are lost and 10 have another value. After the plan was made 6 of these get a newer version, and "
        "3 are erased."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _ids(chosen: Sequence[Order]) -> list[str]:
    return [order["id"] for order in chosen]


def _overwritten(shop: LabShop, planned: Sequence[Order], *, newer: Sequence[Order], erased: Sequence[Order]) -> Naive:
    """Return what `insert … on conflict do update` does of the same plan, on a copy of the table."""
    shop.sql("create table copy (like warehouse including all); insert into copy table warehouse")
    shop.upsert("copy", planned)
    back = shop.sql("select count(*) from copy where id = any(%s) and version = 1", _ids(newer))[0][0]
    alive = shop.sql("select count(*) from copy where id = any(%s)", _ids(erased))[0][0]
    return Naive(
        answer=naive.NaiveAnswer(
            check="insert … on conflict do update of the rows that were planned",
            text=f"{len(planned)} rows written",
            conclusion=f"{back} set back, {alive} brought back",
        ),
        expected=f"{len(newer)} set back, {len(erased)} brought back",
    )


@scenario(
    row=32,
    name="The next run sees the replayed copies",
    happens="What was redelivered lies in the offsets of the next window, as second copies of known keys.",
    made="A loss is repaired; then the same window is judged again, and the next one, whose offsets hold the replays.",
    why="A replay carries the name of its plan, and the journal confirms that this plan replayed that key.",
)
def replayed_copies(lab: Lab) -> Outcome:
    made, lost = _lost(lab)
    shop = lab.shop
    context = shop.judge_and_ask_the_gate()
    assert (plan := plan_window(context).plan) is not None
    assert plan.state is PlanState.FROZEN
    compensate_window(context, lambda _: None)
    first = _repaired(shop, context, made, lost, "the day of the loss")
    again = Window(
        label="the same day, judged again",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made)},
        ),
    )
    tomorrow = orders(range(1000, 1000 + lab.random.randint(20, 60)), day=1)
    shop.write("outbox", tomorrow)
    shop.send(tomorrow)
    shop.load()
    there, chunks = len(lost) + len(tomorrow), ceil(len(lost) / _CHUNK)
    answer = Naive(
        answer=naive.records(shop.bootstrap, shop.topic, rows=shop.count("outbox")), expected=f"{len(lost)} repeated"
    )
    second = Window(
        label="the next day",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": there + chunks, "data": there, "control": chunks},
            matched={LEDGER_HOP: len(tomorrow), STORE_HOP: there},
        ),
    )
    truth = (
        f"Here {len(lost)} of {len(made)} orders are redelivered; the next day has {len(tomorrow)} orders of its own."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(first, again, second))
