"""Add the lines of orders up into one row for each order, rightly and wrongly (row 161)."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from confluent_kafka import TopicPartition

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, GAPS
from tests.lab.shop import LabShop
from tests.world.consumer import committed, consumer, partitions_of, read_to_end
from tests.world.order_lines import TABLE, OrderLines
from tests.world.orders import BORN, DAY
from tests.world.shop import STORE_HOP
from tests.world.windows import Found

_NOT_KNOWN = WindowState.NOT_KNOWN.value
_ADD = f"""\
insert into {TABLE} select * from json_populate_recordset(null::{TABLE}, %s::json)
on conflict (id) do update set at = excluded.at, lines = {TABLE}.lines + excluded.lines,
    total = {TABLE}.total + excluded.total"""
Line = dict[str, Any]


@dataclass(kw_only=True)
class _Adder:
    """A consumer that adds lines up, each once. `skips`: those that it loses; `counts_again`: those that it does not
    know again."""

    shop: LabShop
    skips: Collection[tuple[str, str]] = ()
    counts_again: Collection[tuple[str, str]] = ()
    known: set[tuple[str, str]] = field(default_factory=set)

    def run(self, *, is_killed: bool = False) -> None:
        """Add up what came since the last commit, and commit. `is_killed`: before that, so that it forgets, too."""
        with consumer(self.shop.bootstrap, self.shop.group) as client:
            asked = [TopicPartition(self.shop.topic, at) for at in partitions_of(client, self.shop.topic)]
            start = {at.partition: at.offset for at in committed(client, asked) if at.offset >= 0}
            lines = [json.loads(message.value() or b"") for message in read_to_end(client, self.shop.topic, start)]
            known = set(self.known)
            self.shop.sql(_ADD, json.dumps(_rows([line for line in lines if self._is_counted(line)])))
            if is_killed:
                self.known = known
                return
            client.commit(offsets=[at for at in client.position(asked) if at.offset >= 0], asynchronous=False)

    def _is_counted(self, line: Line) -> bool:
        name = _name(line)
        is_known = name in self.known and name not in self.counts_again
        self.known.add(name)
        return not is_known and name not in self.skips


def _name(line: Line) -> tuple[str, str]:
    return line["order"], line["line_id"]


def _rows(lines: Sequence[Line]) -> list[Line]:
    """Return what lines add to the rows of their orders."""
    by_order: dict[str, list[Line]] = {}
    for line in lines:
        by_order.setdefault(line["order"], []).append(line)
    return [
        {
            "id": order,
            "lines": len(of_order),
            "total": str(sum(Decimal(line["price"]["amount"]) for line in of_order)),
            "at": (BORN + max(line["at"] for line in of_order) * DAY).isoformat(),
        }
        for order, of_order in by_order.items()
    ]


def _open(lab: Lab) -> OrderLines:
    shop = lab.shop
    shop.partitions = lab.random.randint(1, 3)
    shop.make_topic()
    orders = OrderLines(shop=shop)
    orders.make_table()
    shop.sql(f"alter table {TABLE} add primary key (id)")
    orders.describe(consumer_group=shop.group)
    return orders


def _names(lab: Lab, day: int = 0) -> list[str]:
    return [f"D{day}-{number}" for number in range(lab.random.randint(20, 40))]


def _lines(lab: Lab, orders: OrderLines, names: Iterable[str], day: int = 0, first: int = 1) -> list[Line]:
    """Return two to six lines of each order, in any order; no two of one order have one amount."""
    made = [
        orders.line(name, f"{number}", str(Decimal(cents) / 100), day)
        for name in names
        for number, cents in enumerate(lab.random.sample(range(-50_000, 50_000), lab.random.randint(2, 6)), first)
    ]
    lab.random.shuffle(made)
    return made


def _send(orders: OrderLines, lines: Sequence[Line]) -> None:
    """Send each line to the partition of its order."""
    partitions = orders.shop.partitions
    for at in range(partitions):
        own = [line for line in lines if sum(line["order"].encode()) % partitions == at]
        orders.send(*own, partition=at)


def _one_of(lab: Lab, lines: Sequence[Line], order: str) -> Line:
    return lab.random.choice([line for line in lines if line["order"] == order])


def _found(orders: Iterable[str], verdict: str, cause: str) -> Found:
    return dict.fromkeys(orders, (verdict, cause))


def _day(sent: Sequence[Line], matched: int, verdicts: Found, state: str = CERTIFIED) -> Judged:
    """Return a day of lines of which this is right."""
    return Judged(
        state=state,
        reason=None if state == CERTIFIED else "",
        accounting={"span": len(sent), "data": len(sent)},
        matched={STORE_HOP: matched},
        found={STORE_HOP: verdicts} if verdicts else {},
    )


def _counted(shop: LabShop, sent: Sequence[Line], expected: str | None = None) -> Naive:
    """Compare the number of lines with what the rows count. `expected` None: the difference of the two."""
    lines, total = len({_name(line) for line in sent}), int(shop.sql(f"select sum(lines) from {TABLE}")[0][0])
    return Naive(
        answer=naive.counted(lines, total), expected=naive.compared(lines, total) if expected is None else expected
    )


@scenario(
    row=161,
    name="Orders that are added up from their lines",
    happens=(
        "A store has a row for each order, with the number of its lines and their sum. Lines are sent again and "
        "counted once, and an order goes on into the next day."
    ),
    made=(
        "A consumer that knows again what it counted, and a hop with `group`; some lines are sent twice, and some "
        "orders have lines on both days when the first one is judged."
    ),
    why="A row is held to all records of its key, each once. Where more come, it waits for the window of the last.",
)
def added_up(lab: Lab) -> Outcome:
    orders, random = _open(lab), lab.random
    names, second = _names(lab), _names(lab, 1)
    goes_on = random.sample(names, random.randint(1, 5))
    first = _lines(lab, orders, names)
    first += random.sample(first, random.randint(1, 9))
    later = _lines(lab, orders, second, 1) + _lines(lab, orders, goes_on, 1, first=10)
    later += random.sample(later, random.randint(1, 9))
    _send(orders, first)
    adder = _Adder(shop=lab.shop)
    adder.run()
    _send(orders, later)
    adder.run()
    left = _found(goes_on, "pending", "key_continues")
    windows = (
        Window(label="the first day", judged=lab.shop.day(), expected=_day(first, len(names) - len(goes_on), left)),
        Window(label="the second day", judged=lab.shop.day(1), expected=_day(later, len(second) + len(goes_on), {})),
    )
    truth = f"Here {len(goes_on)} of {len(names)} orders have lines on the next day, too."
    return Outcome(truth=truth, naive=(_counted(lab.shop, [*first, *later], naive.WELL),), windows=windows)


@scenario(
    row=161,
    name="Lines that are not counted, or twice, and rows that are gone, or of no order",
    happens=(
        "The consumer loses some lines, and counts others again that were sent twice. Rows are deleted by "
        "hand, and others written. What is too little and what is too much add up to the same."
    ),
    made="As before; as many lines lost as counted twice, and for each row that is gone one with as many lines.",
    why=(
        "Each row is held to its own records, exactly. A difference of just one record, or of one that was sent again, "
        "says which mistake it was, and the finding names the record. No remedy adds up: the consumer has to."
    ),
)
def added_up_wrongly(lab: Lab) -> Outcome:
    orders, random, shop = _open(lab), lab.random, lab.shop
    names = _names(lab)
    sent = _lines(lab, orders, names)
    count, gone = random.randint(1, 4), random.randint(1, 4)
    picked = random.sample(names, 2 * count + gone)
    short, again, deleted = picked[:count], picked[count : 2 * count], picked[2 * count :]
    resent = [_one_of(lab, sent, order) for order in again]
    sent += resent
    lost = [_one_of(lab, sent, order) for order in short]
    _send(orders, sent)
    _Adder(shop=shop, skips=[*map(_name, lost)], counts_again=[*map(_name, resent)]).run()
    strays = [f"S{at}" for at, _ in enumerate(deleted)]
    for order, stray in zip(deleted, strays, strict=True):
        shop.sql(f"update {TABLE} set id = %s where id = %s", stray, order)
    verdicts = {
        **_found(short, "mismatched", "record_not_counted"),
        **_found(again, "mismatched", "resend_counted"),
        **_found(deleted, "missing", "committed_before_written"),
        **_found(strays, "unexpected", "not_in_source"),
    }
    expected = _day(sent, len(names) - len(picked), verdicts, GAPS)
    truth = (
        f"Here one line is lost of each of {count} orders of {len(names)}, and one counted twice of {count} others; "
        f"{gone} rows are gone, and {gone} are of no order."
    )
    answer = _counted(shop, sent, naive.WELL)
    return Outcome(truth=truth, naive=(answer,), windows=(Window(judged=shop.day(), expected=expected),))


@scenario(
    row=161,
    name="A consumer that adds up, dies, and adds up again",
    happens=(
        "It adds what it read to the rows, and is killed before it commits. Whoever starts it again has it add the "
        "same lines once more, as what it knew of them died with it."
    ),
    made="A first part of the lines is added up twice, without a commit in between; then the rest.",
    why="The lines are in the topic once, and the row has them twice: it differs, and no record alone explains it.",
)
def added_up_again(lab: Lab) -> Outcome:
    orders, random, shop = _open(lab), lab.random, lab.shop
    names = _names(lab)
    hit = random.sample(names, random.randint(1, 8))
    batch, rest = _lines(lab, orders, hit), _lines(lab, orders, [name for name in names if name not in hit])
    adder = _Adder(shop=shop)
    _send(orders, batch)
    adder.run(is_killed=True)
    _send(orders, rest)
    adder.run()
    sent = [*batch, *rest]
    verdicts = _found(hit, "mismatched", "value_differs")
    expected = _day(sent, len(names) - len(hit), verdicts, GAPS)
    truth = f"Here the lines of {len(hit)} of {len(names)} orders are added up twice."
    window = Window(judged=shop.day(), expected=expected)
    return Outcome(truth=truth, naive=(_counted(shop, sent),), windows=(window,))


@scenario(
    row=161,
    name="Lines that come when their order was judged",
    happens="Some lines come a day late: their orders were judged, and right. The consumer adds them, or loses them.",
    made="A day that is judged; on the next one the late lines, of which some are not counted.",
    why=(
        "The window of the late line does not have the amounts of the other ones, so that neither right nor wrong is "
        "said of its row: `undecidable`, until a person accepts it. All other orders are judged."
    ),
)
def line_comes_late(lab: Lab) -> Outcome:
    orders, random, shop = _open(lab), lab.random, lab.shop
    names, second = _names(lab), _names(lab, 1)
    first = _lines(lab, orders, names)
    _send(orders, first)
    adder = _Adder(shop=shop)
    adder.run()
    well = Window(label="before they come", judged=shop.day(), expected=_day(first, len(names), {}))
    hit = random.sample(names, random.randint(1, 5))
    late = [orders.line(name, "late", str(Decimal(random.randint(1, 9999)) / 100), 1) for name in hit]
    lost = random.sample(late, random.randint(0, len(late)))
    later = [*late, *_lines(lab, orders, second, 1)]
    random.shuffle(later)
    _send(orders, later)
    adder.skips = [*map(_name, lost)]
    adder.run()
    left = _found(hit, "undecidable", "key_not_whole")
    expected = _day(later, len(second), left, _NOT_KNOWN)
    if len(lost) < len(late):  # rows that were added to have the time of the next day now
        expected = replace(expected, incidents=(("slice_shrunk", None, None, None),))
    after = Window(label="the day on which they come", judged=shop.day(1), expected=expected)
    truth = f"Here {len(late)} lines of {len(names)} orders come late, and {len(lost)} of them are not counted."
    return Outcome(truth=truth, naive=(_counted(shop, [*first, *later]),), windows=(well, after))
