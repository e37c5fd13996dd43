"""Hold what scenarios of Iceberg's Connect sink share: a shop that it loads, its days, and what is right of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window
from tests.lab.scenarios.patterns.days import GAPS, whole_day
from tests.lab.shop import LabShop
from tests.world.environment import set_connection
from tests.world.iceberg_lake import in_order
from tests.world.iceberg_sink import IcebergSink
from tests.world.orders import Order, orders
from tests.world.pipeline_file import dataset, flow
from tests.world.shop import STORE_HOP

_REPAIR = "{missing: upsert, duplicate: quarantine}"
_BY_POSITION = 0.5
_OF_RECORD = {"sent_at": "_kafka_metadata.timestamp"}
_OF_POSITION = {"part": "_kafka_metadata.partition", "pos": "_kafka_metadata.offset"}


@dataclass(kw_only=True)
class SinkShop:
    """A shop whose warehouse is an Iceberg table, which the sink loads from the shop's topic.

    `is_by_position`: its rows have no business key, and no ledger is before the topic.
    """

    lab: Lab
    sink: IcebergSink
    is_by_position: bool
    made: list[Order] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _ends: Counter[int] = field(default_factory=Counter)

    @property
    def shop(self) -> LabShop:
        return self.lab.shop

    def some(self, day: int = 0) -> list[Order]:
        """Make some more orders of a day."""
        first = 100 * len(self.made)
        return orders(range(first, first + self.lab.random.randint(10, 40)), day)

    def send(self, made: list[Order]) -> list[Order]:
        """Write orders into the ledger, and into the topic; return them."""
        self.shop.write("outbox", made)
        self.shop.send(made)
        self.made += made
        for order in made:
            partition = order["number"] % self.shop.partitions
            position = f'["{partition}","{self._ends[partition]}"]'
            self._names[order["id"]] = position if self.is_by_position else order["id"]
            self._ends[partition] += 1
        return made

    def deliver(self, day: int = 0) -> list[Order]:
        """Send some orders, and wait until each has a row and the coordinator has noted it."""
        made = self.send(self.some(day))
        self.sink.wait_for_orders(order["id"] for order in made)
        self.sink.wait_for_coordinator()
        return made

    def kill_before_its_commit(self) -> list[Order]:
        """Send some orders, and kill the sink when its group is past them and its table has none of them."""
        with self.sink.killed_before_its_commit():
            return self.send(self.some())

    def keys(self, some: Iterable[Order]) -> list[str]:
        """Return the names by which findings call orders."""
        return [self._names[order["id"]] for order in some]

    def whole(self, made: Sequence[Order]) -> Judged:
        """Return a certified day of these orders, each of which has one row."""
        day = whole_day(made)
        return replace(day, matched={STORE_HOP: len(made)}) if self.is_by_position else day

    def found(self, day: Judged, wrong: Sequence[str], verdict: str, cause: str) -> Judged:
        """Return a day, of which some orders were wrong in the table."""
        matched = {**day.matched, STORE_HOP: day.matched[STORE_HOP] - len(wrong)}
        return replace(day, matched=matched, found={STORE_HOP: dict.fromkeys(wrong, (verdict, cause))})

    def rows(self) -> list[dict[str, Any]]:
        """Return every row of the table, in an order that depends on its values alone."""
        return in_order(self.sink.table().scan().to_arrow().to_pylist())

    def lag(self) -> Naive:
        """Return the lag of the sink's group, which is none."""
        answer = naive.lag(self.shop.bootstrap, self.shop.topic, self.sink.names.group)
        return Naive(answer=answer, expected=naive.WELL)


def open_sink(lab: Lab) -> SinkShop:
    """Open a shop whose warehouse the sink loads, which runs; its rows are known by a key or by their positions."""
    is_by_position = lab.random.random() < _BY_POSITION
    shop = lab.shop
    sink = IcebergSink(
        bootstrap=shop.bootstrap, dsn=shop.dsn, folder=shop.folder, topic=shop.topic, tasks=lab.random.randint(1, 2)
    )
    set_connection(lab.patch, "lake", sink.described)
    columns = _OF_RECORD if is_by_position else {**_OF_RECORD, **_OF_POSITION}
    warehouse = dataset("lake", sink.lake.table, position="_kafka_metadata", columns=flow(columns))
    if is_by_position:
        del warehouse["key"]
    del warehouse["time"]
    names = sink.names
    shop.open_shop(
        partitions=lab.random.randint(1, 3),
        more_points={"warehouse": warehouse},
        has_ledger=not is_by_position,
        topic_key="position" if is_by_position else '"$.id"',
        hop={
            "consumer_group": names.group,
            "control_topic": names.control_topic,
            "compensation": _REPAIR,
            "leave": f"[{', '.join(columns)}]",
        },
    )
    sink.prepare()
    lab.ends.callback(lab.cluster.delete_topic, names.control_topic)
    lab.ends.callback(sink.worker.process.stop)
    sink.worker.start()
    return SinkShop(lab=lab, sink=sink, is_by_position=is_by_position)


def repaired_and_undone(day: SinkShop, truth: str, wrong: Sequence[str], verdict: str, cause: str) -> Outcome:
    """Judge a day and repair what is wrong in it, and take the repair back: the table is as it was."""
    shop, answer, before = day.shop, day.lag(), day.rows()
    expected = day.found(day.whole(day.made), wrong, verdict, cause)
    context = shop.judge_and_repair(0)
    repaired = replace(expected, messages=(f"{STORE_HOP}: {len(wrong)} repaired",))
    proven = Window(label="a day with it", judged=shop.verified_with_outcomes(context), expected=repaired)
    open_again = replace(expected, state=GAPS, reason="", messages=(f"{STORE_HOP}: {len(wrong)} open",))
    back = Window(label="its repair taken back", judged=shop.undone(context), expected=open_again)
    assert day.rows() == before
    return Outcome(truth=truth, naive=(answer,), windows=(proven, back))
