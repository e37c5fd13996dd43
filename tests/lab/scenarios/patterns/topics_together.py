"""Write several topics in one transaction, whole and in part, and read them rightly and not (rows 88, 89, 95, 96)."""

from collections.abc import Sequence
from dataclasses import replace

from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.loader import Loading, load
from tests.lab.processes.sender import UNCOMMITTED, Way, send
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, GAPS, each, flat, lag, whole_day
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.pipeline_file import topic as topic_point
from tests.world.shop import LEDGER_HOP, STORE_HOP

_BILLS_HOP = "outbox→bills"
_KAFKA_IO = ("tests/integration/spark/test_windows.py",)


def _open(lab: Lab) -> str:
    """Open a shop whose ledger goes into two topics; return the name of the second one."""
    bills = f"{lab.shop.topic}-bills"
    lab.cluster.create_topic(bills, min_isr=2)
    lab.ends.callback(lab.cluster.delete_topic, bills)
    hop = {"from": "outbox", "to": "bills", "compensation": "{missing: produce}"}
    lab.shop.open_shop(more_points={"bills": topic_point("log", bills)}, more_hops=[hop])
    return bills


def _batches(lab: Lab, day: int) -> list[list[Order]]:
    sizes = [lab.random.randint(1, 12) for _ in range(lab.random.randint(4, 8))]
    made = iter(orders(range(1000 * day, 1000 * day + sum(sizes)), day))
    return [[next(made) for _ in range(size)] for size in sizes]


def _expected(batches: Sequence[Sequence[Order]], aborted: Sequence[Order], *, in_both: bool = True) -> Judged:
    """Return a day of transactions, of which the orders of some were aborted and produced from the ledger."""
    made = flat(batches)
    there = [order for order in made if order not in aborted]
    data, markers = len(there), len(batches)
    hops = [_BILLS_HOP, LEDGER_HOP] if in_both else [LEDGER_HOP]
    accounting = {"span": len(made) + markers, "data": data, "control": markers}
    return Judged(
        state=CERTIFIED,
        accounting=accounting | ({"aborted": len(aborted)} if aborted else {}),
        matched={LEDGER_HOP: data, STORE_HOP: data, _BILLS_HOP: data if in_both else len(made)},
        found={hop: each(aborted, "missing", "aborted_transaction") for hop in hops} if aborted else {},
        messages=tuple(f"{hop}: {len(aborted)} repaired" for hop in hops) if aborted else (),
    )


def _repaired(shop: LabShop, day: int) -> Judged:
    context = shop.judge_and_repair(day)
    shop.settle_transactions()
    shop.load()
    return shop.verified_with_outcomes(context)


@scenario(
    row=88,
    name="One transaction over several topics",
    happens=(
        "An application writes an order and its bill into two topics, in one transaction. On one day all goes well. On "
        "the next it is killed before a commit, and does not look back when it is started again."
    ),
    made=(
        "A transactional producer in a process of its own, two topics of one ledger; SIGKILL before a commit, and a "
        "start with the same `transactional.id`, or an abort (by the seed). `missing: produce`."
    ),
    why=(
        "A transaction is in all of its topics or in none. What was aborted is missing in both, by its ledger; the "
        "repair writes it into both."
    ),
    covered_by=_KAFKA_IO,
)
def several_topics(lab: Lab) -> Outcome:
    shop, bills = lab.shop, _open(lab)
    way = Way(settings={"transactional_id": f"tx-{shop.topic}"}, topics=[shop.topic, bills])
    good = _batches(lab, 0)
    send(shop, good, way)
    shop.settle_transactions()
    shop.load()
    first = Window(label="a day on which all is committed", judged=shop.day(), expected=_expected(good, []))
    batches = _batches(lab, 1)
    hit, is_killed = lab.random.randrange(len(batches)), lab.random.random() < 0.5
    if is_killed:
        send(shop, batches, way, killed_at=(hit, UNCOMMITTED))
        send(shop, batches[hit + 1 :], way)
    else:
        send(shop, batches, replace(way, aborted=[hit]))
    shop.settle_transactions()
    shop.load()
    lost, answer = batches[hit], lag(shop)
    second = Window(label="a day on which one is aborted", judged=_repaired(shop, 1), expected=_expected(batches, lost))
    why = "the application is killed before its commit" if is_killed else "the application aborts it"
    truth = f"Here one transaction of {len(batches)} on the second day has {len(lost)} orders, and {why}."
    return Outcome(truth=truth, naive=(answer,), windows=(first, second))


@scenario(
    row=89,
    name="One topic is written outside the transaction",
    happens=(
        "The same application, but for a mistake: bills are written by another producer that is in no transaction. "
        "When one is aborted, its bills stay."
    ),
    made="As before; some transactions are aborted, and a plain producer writes the second topic. `missing: produce`.",
    why=(
        "Each topic is held to the ledger for itself: the orders of the aborted transactions are missing, their bills "
        "are not. Nothing is written into the topic that has them."
    ),
    covered_by=_KAFKA_IO,
)
def one_topic_outside(lab: Lab) -> Outcome:
    shop, bills = lab.shop, _open(lab)
    batches = _batches(lab, 0)
    hit = sorted(lab.random.sample(range(len(batches)), 2))
    way = Way(settings={"transactional_id": f"tx-{shop.topic}"}, outside=[bills], aborted=hit)
    send(shop, batches, way)
    shop.settle_transactions()
    shop.load()
    lost, there = flat([batches[number] for number in hit]), len(shop.read(bills))
    answer = lag(shop)
    window = Window(judged=_repaired(shop, 0), expected=_expected(batches, lost, in_both=False))
    assert len(shop.read(bills)) == there
    truth = f"Here two transactions of {len(batches)} are aborted, with {len(lost)} orders whose bills are there."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


@scenario(
    row=95,
    name="A reader of uncommitted records, and transactions that are tried again",
    happens=(
        "Transactions are aborted, and the application writes their orders again and commits. A consumer at "
        "`read_uncommitted`, which is the default of Java's clients, loads both."
    ),
    made=(
        "A transactional producer, of which some transactions are aborted and written again; a loader that reads "
        "uncommitted records and inserts. `duplicate: quarantine`, and then the repair is taken back."
    ),
    why=(
        "An aborted copy is no copy, so the topic has each order once. A row for each copy that is in the log, aborted "
        "ones included, says how the second row came: by a reader that does not wait for the commit."
    ),
    covered_by=_KAFKA_IO,
)
def uncommitted_twice(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    batches = _batches(lab, 0)
    hit = sorted(lab.random.sample(range(len(batches)), 2))
    way = Way(settings={"transactional_id": f"tx-{shop.topic}"})
    send(shop, batches, replace(way, aborted=hit))
    again = [batches[number] for number in hit]
    send(shop, again, replace(way, ledger=None))
    shop.settle_transactions()
    load(shop, Loading(isolation="read_uncommitted"))
    made, twice = flat(batches), flat(again)
    rows = Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=f"{len(twice)} repeated")
    before = shop.all_rows()
    context = shop.judge_and_repair(0)
    markers = len(batches) + len(again)
    expected = Judged(
        state=CERTIFIED,
        accounting={
            "span": len(made) + len(twice) + markers,
            "data": len(made),
            "control": markers,
            "aborted": len(twice),
        },
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(twice)},
        found={STORE_HOP: each(twice, "duplicate", "read_uncommitted")},
        messages=(f"{STORE_HOP}: {len(twice)} repaired",),
    )
    repaired = Window(judged=shop.verified_with_outcomes(context), expected=expected)
    undone = Window(
        label="its repair taken back",
        judged=shop.undone(context),
        expected=replace(expected, state=GAPS, reason="", messages=(f"{STORE_HOP}: {len(twice)} open",)),
    )
    assert shop.all_rows() == before
    truth = f"Here {len(twice)} of {len(made)} orders were aborted first, and have a row for each of the two times."
    return Outcome(truth=truth, naive=(rows,), windows=(repaired, undone))


@scenario(
    row=96,
    name="A reader of a part of a transaction's partitions",
    happens=(
        "A transaction writes into several partitions. A consumer was given some of them by hand, and nothing reads "
        "the others: of each transaction it loads a part."
    ),
    made="Transactions over two partitions; a loader that is assigned one. Its group has no offset in the other.",
    why=(
        "A transaction is atomic for who reads all of it. In a partition where the group has no offset, late and lost "
        "cannot be distinguished: the window is not known, and says which partition nothing reads."
    ),
    covered_by=("tests/integration/spark/test_waiting.py",),
)
def part_of_the_partitions(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(partitions=2, hop={"consumer_group": shop.group})
    batches = _batches(lab, 0)
    send(shop, batches, Way(settings={"transactional_id": f"tx-{shop.topic}"}))
    shop.settle_transactions()
    taken = lab.random.randint(0, 1)
    load(shop, Loading(partitions=[taken]))
    made = flat(batches)
    left = [order for order in made if order["number"] % 2 != taken]
    markers = sum(len({order["number"] % 2 for order in batch}) for batch in batches)
    end = len(left) + sum(any(order in left for order in batch) for batch in batches)
    expected = replace(
        whole_day(made),
        state="not_known",
        accounting={"span": len(made) + markers, "data": len(made), "control": markers},
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(left)},
        found={STORE_HOP: each(left, "pending", "not_yet_consumed")},
        incidents=(("group_unknown", 1 - taken, 0, end),),
        reason=f"not proven: group `loader-orders` has committed no offset in orders/{1 - taken}, ",
    )
    answer = Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made)), expected=naive.WELL)
    truth = f"Here {len(left)} of {len(made)} orders are in the partition that nothing reads."
    return Outcome(truth=truth, naive=(answer,), windows=(Window(judged=shop.day(), expected=expected),))
