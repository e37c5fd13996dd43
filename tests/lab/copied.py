"""Set up a shop whose topic is copied into a second one, with nothing behind it, and let copiers die on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from makewhole.compensation.plan_window import plan_window
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer, compared
from tests.lab.processes.copier import Copier, Copying, Step
from tests.lab.scenario import Lab, Naive
from tests.lab.shop import LabShop
from tests.world.consumer import read_all
from tests.world.orders import COLUMNS, Order, orders
from tests.world.pipeline_file import Settings, ledger, pipeline_file, topic

COPY_HOP = "orders→copies"
BATCH = 50
_REVERSE: Settings = {
    "compensation": "{missing: redeliver, duplicate: reverse}",
    "reverse": "{to: reversals, value: {type: copy_reversed, id: '{{ key }}', place: '{{ finding.place }}'}}",
}


@dataclass(kw_only=True)
class CopiedTopic:
    """A shop that has taken orders, and where they are copied to. `cancelled`: those whose transactions were aborted,
    and that the ledger does not have."""

    lab: Lab
    made: list[Order]
    cancelled: list[Order]

    @property
    def shop(self) -> LabShop:
        return self.lab.shop

    @property
    def target(self) -> str:
        return f"{self.shop.topic}-copies"

    @property
    def reversals(self) -> str:
        return f"{self.shop.topic}-reversals"

    def copying(self, **settings: Any) -> Copying:
        """How it is copied: `Copying`, of this topic."""
        named = Copying(source=self.shop.topic, target=self.target, group=self.shop.group, records=BATCH)
        return replace(named, **settings)

    def start(self, copying: Copying) -> Copier:
        """Start a copier; it is ended with the scenario, whatever happens."""
        return self.lab.ends.enter_context(Copier(self.shop.bootstrap, copying))

    def die_and_finish(self, copying: Copying, step: Step, deaths: Sequence[int]) -> list[str]:
        """Kill a copier at a step of its n-th batch (`deaths`: once for each), then let one come to the end. Return the
        keys that it was copying when it was killed."""
        caught = [key for times in deaths for key in self.die(copying, step, times)]
        self.finish(copying)
        return caught

    def die(self, copying: Copying, step: Step, times: int) -> list[str]:
        """Kill a copier at a step of its n-th batch; the keys that it was copying."""
        copier = self.start(copying)
        keys = copier.until(step, times)
        copier.kill()
        return keys

    def finish(self, copying: Copying) -> None:
        """Copy to the end of what is there."""
        ended = self.start(copying).finish()
        assert ended == "done", ended

    def lag(self) -> Naive:
        """Ask for the lag of the copier's group. Of each partition the last marker is behind it."""
        answer = naive.lag(self.shop.bootstrap, self.shop.topic, self.shop.group)
        return Naive(answer=answer, expected=f"{self.shop.partitions} not consumed")

    def counted(self) -> NaiveAnswer:
        """Compare the numbers of committed records in both topics."""
        source, target = (len(read_all(self.shop.bootstrap, name)) for name in (self.shop.topic, self.target))
        return NaiveAnswer(
            check="records of read_committed consumers of both topics",
            text=f"{source} records, {target} copies",
            conclusion=compared(source, target),
        )

    def repaired(self, copying: Copying) -> Judged:
        """Judge a day, repair what is missing, have the copier go on, and judge again."""
        context = self.shop.judge_and_ask_the_gate()
        plan_window(context)
        self.shop.repair(context)
        self.finish(copying)
        return self.shop.verified_with_outcomes(context)


def open_copied(lab: Lab, *, has_group: bool = True, has_reversals: bool = False, partitions: int = 2) -> CopiedTopic:
    """Take orders into a topic by transactions, of which some are aborted, beside a topic for its copies. Without
    `has_group` the pipeline's file does not name the copier's, and nothing is sent again. With `has_reversals` copies
    too many are taken back by events in a third topic."""
    shop = lab.shop
    shop.partitions = partitions
    shop.make_tables()
    shop.make_topic()
    batches = lab.random.randint(16, 20)
    aborted = set(lab.random.sample(range(batches - 1), 4))
    made = [orders(range(number * BATCH, (number + 1) * BATCH)) for number in range(batches)]
    copied = CopiedTopic(
        lab=lab,
        made=[order for number, batch in enumerate(made) if number not in aborted for order in batch],
        cancelled=[order for number, batch in enumerate(made) if number in aborted for order in batch],
    )
    for name in (copied.target, *([copied.reversals] if has_reversals else [])):
        lab.cluster.create_topic(name, partitions=partitions, min_isr=2, settings={})
        lab.ends.callback(lab.cluster.delete_topic, name)
    hop = {"consumer_group": shop.group} if has_group else {"compensation": "{missing: report}"}
    _describe(copied, {**hop, **(_REVERSE if has_reversals else {})}, has_reversals=has_reversals)
    shop.write("outbox", copied.made)
    shop.transactions(made, is_committed=lambda number: number not in aborted)
    return copied


def _describe(copied: CopiedTopic, hop: Settings, *, has_reversals: bool) -> None:
    shop = copied.shop
    reversals = {"reversals": topic("log", copied.reversals, key='"$.id"')} if has_reversals else {}
    text = pipeline_file(
        "shop",
        points={
            "outbox": ledger("db", "outbox"),
            "orders": topic("log", shop.topic),
            "copies": topic("log", copied.target),
            **reversals,
        },
        hops=[{"from": "outbox", "to": "orders"}, {"from": "orders", "to": "copies", **hop}],
        settings={
            "start": "earliest",
            "settle": "0s",
            "compare": '{amount: "decimal(8,2)"}',
            "compensation": "{limits: {share: 1.0}, approval: {above_actions: 1000}}",
        },
        columns=COLUMNS,
    )
    shop.file.write_text(text)
