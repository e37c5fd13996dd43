"""Make an unclean election cut off acknowledged records (rows 9, 11)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.brokers import ONE_COPY_IS_ENOUGH, end_of_log, left_behind, well
from tests.world.orders import BORN, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


def _truncate(lab: Lab, while_alone: Callable[[], None]) -> None:
    """Have the leader alone hold what is written `while_alone`; then it dies and a replica without it takes over."""
    cluster, topic = lab.cluster, lab.shop.topic
    leader, followers = cluster.leader(topic), cluster.followers(topic)
    cluster.kill(*followers)
    cluster.wait_for_isr(topic, 0, [leader])
    cluster.wait_for_group(lab.shop.group)
    while_alone()
    cluster.kill(leader)
    cluster.restart(*followers)
    cluster.elect_unclean(topic)
    cluster.heal()


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """Hold what became of orders: `safe` were on all replicas, `cut` on the dead leader only; the rest came after."""

    safe: list[Order]
    cut: list[Order]
    again: list[Order]
    new: list[Order]
    first: Judged
    answer: tuple[Naive, ...]

    @property
    def truth(self) -> str:
        return (
            f"Here {len(self.cut)} acknowledged orders were cut off, {len(self.again)} of them were sent again, and "
            f"{len(self.again) + len(self.new)} records took their offsets."
        )

    def judged_before(self, hops: tuple[str, ...]) -> Window:
        count = len(self.safe) + len(self.cut)
        return Window(
            label="before",
            judged=self.first,
            expected=Judged(
                state=WindowState.CERTIFIED.value,
                accounting={"span": count, "data": count},
                matched=dict.fromkeys(hops, count),
            ),
        )

    @property
    def incidents(self) -> tuple[tuple[str, int | None, int | None, int | None], ...]:
        lo, hi = len(self.safe), len(self.safe) + len(self.cut)
        return (("leader_changed", 0, lo, hi), ("truncated", 0, lo, hi))


def _cut(lab: Lab, *, has_ledger: bool) -> _Cut:
    """A judged day; then its last records are cut off, and as many others take their offsets."""
    shop = lab.shop.open_shop(topic=ONE_COPY_IS_ENOUGH, has_ledger=has_ledger)
    safe_count, cut_count = (lab.random.randint(5, 100) for _ in range(2))
    first_day = orders(range(safe_count + cut_count))
    safe, cut = first_day[:safe_count], first_day[safe_count:]
    again = lab.random.sample(cut, lab.random.randrange(cut_count))
    new = orders(range(len(first_day), len(first_day) + cut_count - len(again)), day=1)
    shop.write("outbox", first_day)
    shop.send(safe, settings={"acks": "all"})
    judged: list[Judged] = []

    def while_alone() -> None:
        shop.send(cut, settings={"acks": "all"})
        shop.load()
        judged.append(shop.day())

    _truncate(lab, while_alone)
    assert end_of_log(lab) == safe_count
    shop.write("outbox", new)
    second = [*again, *new]
    lab.random.shuffle(second)
    shop.send(second)
    answer = (*well(shop), Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL))
    shop.write("warehouse", new)  # the loader is set back by hand, and skips what it has
    return _Cut(safe=safe, cut=cut, again=again, new=new, first=judged[0], answer=answer)


@scenario(
    row=9,
    name="An unclean election cuts acknowledged records off",
    happens=(
        "The last replica in sync dies, and one that lacks the newest records becomes leader. They are gone, and their "
        "offsets are given to other records: ends, lag and counts look as before."
    ),
    made=(
        "`min.insync.replicas=1`; both followers are killed, orders are sent (acks=all) and judged; the leader is "
        "killed, the followers come back, unclean election; as many records are sent again."
    ),
    why=(
        "The leader epochs of the last window do not lead to where they ended: exactly the offsets that were cut off "
        "are known. Their keys are judged again, against the log as it is now."
    ),
    is_short=True,
)
def unclean_election(lab: Lab) -> Outcome:
    cut = _cut(lab, has_ledger=True)
    again = {order["id"] for order in cut.again}
    came = len(cut.again) + len(cut.new)
    second = Window(
        label="after",
        judged=lab.shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": came, "data": came},
            matched={LEDGER_HOP: came, STORE_HOP: came},
            found={
                LEDGER_HOP: {order["id"]: ("missing", "truncated") for order in cut.cut if order["id"] not in again}
            },
            incidents=cut.incidents,
            reason="",
        ),
    )
    return Outcome(truth=cut.truth, naive=cut.answer, windows=(cut.judged_before((LEDGER_HOP, STORE_HOP)), second))


@scenario(
    row=9,
    name="An unclean election, and there is no ledger",
    happens="The same, and nothing but the topic says what was sent.",
    made="As before, with a pipeline that begins at the topic.",
    why=(
        "What is gone is known to the offset, but not who missed it: the window is not proven, and says so. The rows "
        "in the store may be the only copies left."
    ),
)
def unclean_election_without_ledger(lab: Lab) -> Outcome:
    cut = _cut(lab, has_ledger=False)
    came = len(cut.again) + len(cut.new)
    second = Window(
        label="after",
        judged=lab.shop.day(1),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": came, "data": came},
            matched={STORE_HOP: came},
            incidents=cut.incidents,
            reason="",
        ),
    )
    return Outcome(truth=cut.truth, naive=cut.answer, windows=(cut.judged_before((STORE_HOP,)), second))


@scenario(
    row=11,
    name="An idempotent producer survives an unclean election",
    happens=(
        "The new leader lacks the producer's last batches. The producer raises its epoch and numbers from 0 again: no "
        "sequence is skipped, and what was acknowledged is lost."
    ),
    made="As an unclean election, before any window; one Java producer (`enable.idempotence=true`) lives through it.",
    why=(
        "The epoch bump and the change of leader are suspicious and prove nothing. The ledger does: what it lacks is "
        "missing, and the cause says that a leader took it along."
    ),
)
def idempotent_producer_survives(lab: Lab) -> Outcome:
    # Brokers forget producers by the age of their records: these must be young.
    survived = _survived(lab, day=(datetime.now(UTC) - BORN).days - 1)
    assert (survived.suspect["epoch_bumps"], survived.suspect["missing"]) == (1, 0)
    # The check looks at the producer id alone, as most do: the sequences seem to come a second time.
    return survived.outcome(f"{min(survived.safe, survived.after)} repeated")


@scenario(
    row=11,
    name="An idempotent producer that brokers have forgotten survives an unclean election",
    happens=(
        "Brokers forget producers by the age of their records' timestamps: of old records, at once. The new leader "
        "does not know the producer, and takes its next batch as it comes."
    ),
    made="The same with records of a day long past, as in a backfill.",
    why="Here the numbering shows a gap, as long as the loss. It is evidence; what is missing, the ledger says.",
)
def forgotten_producer_survives(lab: Lab) -> Outcome:
    survived = _survived(lab, day=0)
    assert (survived.suspect["epoch_bumps"], survived.suspect["missing"]) == (0, len(survived.cut))
    return survived.outcome(f"{len(survived.cut)} lost")


@dataclass(frozen=True, kw_only=True)
class _Survived:
    """Hold what one producer was acknowledged: `safe` orders, then those that were `cut` off, then `after` others."""

    safe: int
    cut: list[Order]
    after: int
    naive: tuple[Naive, ...]
    sequences: NaiveAnswer
    judged: Judged
    suspect: Mapping[str, Any]

    def outcome(self, sequences: str) -> Outcome:
        """`sequences` is what the check of sequences is known to conclude."""
        kept = self.safe + self.after
        return Outcome(
            truth=f"Here {kept + len(self.cut)} orders were acknowledged to one producer, {len(self.cut)} are gone.",
            naive=(*self.naive, Naive(answer=self.sequences, expected=sequences)),
            windows=(Window(judged=self.judged, expected=left_behind(self.cut, kept, (self.safe, kept))),),
        )


def _survived(lab: Lab, day: int) -> _Survived:
    shop = lab.shop.open_shop(topic=ONE_COPY_IS_ENOUGH)
    safe, cut, after = (lab.random.randint(5, 100) for _ in range(3))
    made = orders(range(safe + cut + after), day=day)
    shop.write("outbox", made)
    java = lab.java().producer(shop.bootstrap, enable_idempotence=True, acks="all", retry_backoff_ms=50)
    producer = lab.ends.enter_context(java)

    def send(some: list[Order]) -> None:
        for sent in [producer.send(shop.topic, **shop.record(order)) for order in some]:
            sent.get()

    send(made[:safe])
    _truncate(lab, lambda: send(made[safe : safe + cut]))
    assert end_of_log(lab) == safe
    send(made[safe + cut :])
    shop.load()
    context = shop.open(day)
    answer = shop.close(context)
    return _Survived(
        safe=safe,
        cut=made[safe : safe + cut],
        after=after,
        naive=well(shop),
        sequences=naive.sequences(shop.bootstrap, shop.topic),
        judged=answer,
        suspect=shop.evidence(context, LEDGER_HOP, made[safe]["id"])["suspect_producers"][0],
    )
