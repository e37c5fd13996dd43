"""Kill consumers between their two steps, in every order in which these are done (rows 21, 22, 91 to 94)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.loader import BETWEEN, DONE, OFFSETS_TABLE, READ, Loading, LoadOrder, load
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import GAPS, kills_of_a_day, lag, whole_day
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, flow
from tests.world.pipeline_file import topic as topic_point
from tests.world.shop import LEDGER_HOP, STORE_HOP

_PROGRESS = flow({"table": "sink_offsets", "topic": "topic", "partition": "part", "offset": "next_offset"})
_STEPS = (READ, BETWEEN, DONE)


@dataclass(frozen=True, kw_only=True)
class _Pattern:
    """A way to load, and where it dies. `steps`: at which of a batch's; `killed`: how often on a day."""

    loading: Loading
    steps: Sequence[str] = (BETWEEN,)
    hop: Settings = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    """A day that was loaded. `hit`: the keys of the batches at which the loader was killed."""

    made: list[Order]
    hit: list[str]
    kills: int


def _open(lab: Lab, pattern: _Pattern, **pipeline: Any) -> LabShop:
    shop, loading = lab.shop, pattern.loading
    named = {"progress": _PROGRESS} if loading.keeps_offsets else {"consumer_group": shop.group}
    shop.open_shop(partitions=lab.random.randint(1, 3), hop={**named, **pattern.hop}, **pipeline)
    shop.sql(OFFSETS_TABLE)
    if loading.overwrites:
        shop.sql("alter table warehouse add primary key (id)")
    return shop


def _day(lab: Lab, pattern: _Pattern, day: int, *, is_killed: bool) -> _Loaded:
    """Send a day of orders and load it, by a loader that is killed some times, and started again."""
    shop = lab.shop
    made = orders(range(1000 * day, 1000 * day + lab.random.randint(30, 60)), day)
    shop.write("outbox", made)
    shop.send(made)
    batch, kills = kills_of_a_day(lab, made, is_killed=is_killed)
    loading, hit = replace(pattern.loading, batch=batch), list[str]()
    for _ in range(kills):
        step = lab.random.choice(pattern.steps)
        steps = load(shop, loading, killed_at=(lab.random.randint(0, 1), step))
        hit += steps[-1].notes
    load(shop, loading)
    return _Loaded(made=made, hit=hit, kills=kills)


def _hit(loaded: _Loaded, verdict: str, cause: str, outcome: str) -> Judged:
    """Return a day of which the orders that were hit have a finding, and what became of it."""
    keys = dict.fromkeys(loaded.hit)
    return replace(
        whole_day(loaded.made),
        matched={LEDGER_HOP: len(loaded.made), STORE_HOP: len(loaded.made) - len(keys)},
        found={STORE_HOP: dict.fromkeys(keys, (verdict, cause))},
        messages=(f"{STORE_HOP}: {len(keys)} {outcome}",),
    )


def _undone(judged: Judged) -> Judged:
    """Return what is said of the same day when its repair was taken back."""
    messages = tuple(message.replace("repaired", "open") for message in judged.messages)
    return replace(judged, state=GAPS, reason="", messages=messages)


def _truth(loaded: _Loaded) -> str:
    times = "once" if loaded.kills == 1 else f"{loaded.kills} times"
    return f"Here the loader of {len(loaded.made)} orders is killed {times}, with {len(set(loaded.hit))} in its hands."


def _well_then_killed(lab: Lab, pattern: _Pattern) -> tuple[Window, _Loaded]:
    """Judge a day on which the loader was not killed, and load another one, on which it was."""
    first = _day(lab, pattern, 0, is_killed=False)
    window = Window(label="a day without a crash", judged=lab.shop.day(), expected=whole_day(first.made))
    return window, _day(lab, pattern, 1, is_killed=True)


@scenario(
    row=21,
    name="A consumer that commits, then processes",
    happens=(
        "It commits the offsets of what it has read, and then writes the rows. It is killed in between: whoever starts "
        "it again has it go on behind these records, and its group has no lag."
    ),
    made="A loader in a process of its own; SIGKILL between the commit in Kafka and the insert. `missing: redeliver`.",
    why=(
        "The lag of a group is what was read, not what was written. The rows are looked for, and what the group is "
        "past and the store lacks was committed before it was written. It is sent again, and loaded."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def commit_then_process(lab: Lab) -> Outcome:
    pattern = _Pattern(loading=Loading(order=LoadOrder.COMMIT_FIRST))
    shop = _open(lab, pattern)
    well, loaded = _well_then_killed(lab, pattern)
    answer = lag(shop)
    context = shop.judge_and_repair(1)
    shop.settle_transactions()
    load(shop, pattern.loading)
    judged = shop.verified_with_outcomes(context)
    expected = _hit(loaded, "missing", "committed_before_written", "repaired")
    killed = Window(label="a day on which it is killed", judged=judged, expected=expected)
    return Outcome(truth=_truth(loaded), naive=(answer,), windows=(well, killed))


@scenario(
    row=22,
    name="A consumer that processes, then commits",
    happens=(
        "It writes the rows of what it has read, and then commits their offsets. It is killed in between: whoever "
        "starts it again has it write these rows once more."
    ),
    made=(
        "A loader in a process of its own, and a table without a key; SIGKILL between the insert and the commit in "
        "Kafka. `duplicate: quarantine`, and then the repair is taken back."
    ),
    why=(
        "One record has several rows. The rows beyond the first are moved aside, whole: taking the repair back puts "
        "them where they were, and the window is open again."
    ),
)
def process_then_commit(lab: Lab) -> Outcome:
    pattern = _Pattern(loading=Loading(order=LoadOrder.WRITE_FIRST))
    shop = _open(lab, pattern)
    well, loaded = _well_then_killed(lab, pattern)
    answer = lag(shop)
    before = shop.all_rows()
    context = shop.judge_and_repair(1)
    expected = _hit(loaded, "duplicate", "written_before_committed", "repaired")
    killed = Window(label="a day on which it is killed", judged=shop.verified_with_outcomes(context), expected=expected)
    undone = Window(label="its repair taken back", judged=shop.undone(context), expected=_undone(expected))
    assert shop.all_rows() == before
    return Outcome(truth=_truth(loaded), naive=(answer,), windows=(well, killed, undone))


@scenario(
    row=91,
    name="Rows that are overwritten by their key",
    happens=(
        "A consumer processes, then commits, and is killed in between, again and again. Its table has a primary key, "
        "and what it writes a second time is written over the first."
    ),
    made="As before, with `insert … on conflict do update`; killed before, between and after its two steps.",
    why="Reading a record twice is no fault: one row is there for each key, with the values of its record.",
    is_short=True,
)
def overwritten_by_key(lab: Lab) -> Outcome:
    pattern = _Pattern(loading=Loading(overwrites=True), steps=_STEPS)
    shop = _open(lab, pattern)
    loaded = _day(lab, pattern, 0, is_killed=True)
    return Outcome(
        truth=_truth(loaded), naive=(lag(shop),), windows=(Window(judged=shop.day(), expected=whole_day(loaded.made)),)
    )


@scenario(
    row=92,
    name="Coupons that are granted twice",
    happens=(
        "A consumer grants coupons, then commits, and is killed in between. A grant has no key to overwrite: the "
        "customer has two coupons, and neither row may be deleted, for it is booked."
    ),
    made=(
        "As before, with a table of grants; `duplicate: reverse`, with a template as in `examples/coupons`, and a "
        "topic of reversals."
    ),
    why=(
        "For each grant too many one event is committed that takes it back, however often that is asked for. Then the "
        "finding is reversed, and the window whole."
    ),
    covered_by=("tests/integration/spark/test_reversals.py", "tests/unit/examples/test_coupons.py"),
)
def granted_twice(lab: Lab) -> Outcome:
    reversals = lab.shop.add_topic()
    reverse = '{to: reversals, value: {type: coupon_reversed, id: "{{ key }}", amount: "{{ -row.amount }}"}}'
    pattern = _Pattern(loading=Loading(), hop={"compensation": "{duplicate: reverse}", "reverse": reverse})
    shop = _open(lab, pattern, more_points={"reversals": topic_point("log", reversals)})
    well, loaded = _well_then_killed(lab, pattern)
    before = shop.all_rows()
    context = shop.judge_and_repair(1)
    shop.repair(context)
    window = Window(
        label="a day on which it is killed",
        judged=shop.verified_with_outcomes(context),
        expected=_hit(loaded, "duplicate", "written_before_committed", "reversed"),
    )
    again = Window(
        label="the same day, judged and repaired again",
        judged=shop.verified_with_outcomes(shop.judge_and_repair(1)),
        expected=window.expected,
    )
    assert shop.all_rows() == before
    taken_back = sorted(record.document["id"] for record in shop.read(reversals))
    assert taken_back == sorted(loaded.hit), taken_back
    return Outcome(truth=_truth(loaded), naive=(lag(shop),), windows=(well, window, again))


@scenario(
    row=93,
    name="Offsets that are kept with the rows, in one transaction",
    happens="A sink writes rows and its own offsets in one transaction of their database. It is killed anywhere.",
    made="A table of offsets beside the rows, which `progress` names; SIGKILL before, in and after the transaction.",
    why="Both are there or neither is: each record has one row, however often the sink dies. Its group has no offset.",
    covered_by=("tests/integration/spark/test_sink_progress.py",),
)
def offsets_with_rows(lab: Lab) -> Outcome:
    pattern = _Pattern(loading=Loading(order=LoadOrder.TOGETHER, keeps_offsets=True), steps=_STEPS)
    shop = _open(lab, pattern)
    loaded = _day(lab, pattern, 0, is_killed=True)
    count = len(loaded.made)
    unread = naive.lag(shop.bootstrap, shop.topic, shop.group)
    return Outcome(
        truth=_truth(loaded),
        naive=(Naive(answer=unread, expected=f"{count} not consumed"),),
        windows=(Window(judged=shop.day(), expected=whole_day(loaded.made)),),
    )


@scenario(
    row=94,
    name="Offsets that are kept beside the rows, in another transaction",
    happens=(
        "A sink keeps its own offsets in the database of its rows, and commits the two one after the other. It is "
        "killed in between: by the order of the two, rows are lost or there twice."
    ),
    made=(
        "As before, in two transactions: the rows first on one day (`duplicate: quarantine`, and then the repair is "
        "taken back), the offsets first on the other (`missing: redeliver`)."
    ),
    why=(
        "That offsets are beside the rows says nothing if they are not of one transaction: the rows are looked for. "
        "What the sink's own progress is past and the store lacks is missing."
    ),
    covered_by=("tests/integration/spark/test_sink_progress.py",),
)
def offsets_beside_rows(lab: Lab) -> Outcome:
    rows_first = _Pattern(loading=Loading(order=LoadOrder.WRITE_FIRST, keeps_offsets=True))
    offsets_first = _Pattern(loading=Loading(order=LoadOrder.COMMIT_FIRST, keeps_offsets=True))
    shop = _open(lab, rows_first)
    doubled = _day(lab, rows_first, 0, is_killed=True)
    context = shop.judge_and_repair(0)
    expected = _hit(doubled, "duplicate", "written_before_committed", "repaired")
    first = Window(label="the rows first", judged=shop.verified_with_outcomes(context), expected=expected)
    undone = Window(label="its repair taken back", judged=shop.undone(context), expected=_undone(expected))
    lost = _day(lab, offsets_first, 1, is_killed=True)
    context = shop.judge_and_repair(1)
    shop.settle_transactions()
    load(shop, rows_first.loading)
    second = Window(
        label="the offsets first",
        judged=shop.verified_with_outcomes(context),
        expected=_hit(lost, "missing", "committed_before_written", "repaired"),
    )
    hit = len(set(doubled.hit)), len(set(lost.hit))
    truth = f"Here {hit[0]} rows of the first day are there twice, and {hit[1]} of the second are lost."
    return Outcome(truth=truth, naive=(), windows=(first, undone, second))
