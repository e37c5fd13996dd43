"""What brokers lose of what they acknowledged (rows 9, 10, 11)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Producer

from makewhole.kafka.offsets import high_watermarks
from makewhole.model.window import WindowState
from tests.integration.spark.world import BORN, LEDGER_HOP, STORE_HOP, Order, orders
from tests.lab import naive
from tests.lab.cluster import BROKERS, SESSION_SECONDS
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import Shop

_ONE_COPY_IS_ENOUGH = {"min_insync_replicas": 1}
_TRIES = 5


def _well(shop: Shop) -> tuple[Naive, ...]:
    """Checks that look at the log as it is now, and find it in order."""
    return (
        Naive(said=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
        Naive(said=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=naive.WELL),
    )


def _end(lab: Lab) -> int:
    return high_watermarks(lab.cluster.connection, lab.shop.topic)[0]


# Truncation


def _truncate(lab: Lab, while_alone: Callable[[], None]) -> None:
    """What is written `while_alone` is on the leader only; then it dies and a replica without it takes over."""
    cluster, topic = lab.cluster, lab.shop.topic
    leader, followers = cluster.leader(topic), cluster.followers(topic)
    cluster.kill(*followers)
    cluster.wait_for_isr(topic, 0, [leader])
    while_alone()
    cluster.kill(leader)
    cluster.restart(*followers)
    cluster.elect_unclean(topic)
    cluster.heal()


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """What became of the orders: `safe` were on all replicas, `cut` on the dead leader only; the rest came after."""

    safe: list[Order]
    cut: list[Order]
    again: list[Order]
    new: list[Order]
    first: Judged
    said: tuple[Naive, ...]

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
    shop = lab.shop.open_shop(topic=_ONE_COPY_IS_ENOUGH, has_ledger=has_ledger)
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
    assert _end(lab) == safe_count
    shop.write("outbox", new)
    second = [*again, *new]
    lab.random.shuffle(second)
    shop.send(second)
    said = (*_well(shop), Naive(said=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL))
    shop.write("warehouse", new)  # the loader is set back by hand, and skips what it has
    return _Cut(safe=safe, cut=cut, again=again, new=new, first=judged[0], said=said)


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
        "are known. Their keys are judged anew, against the log as it is now."
    ),
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
    return Outcome(truth=cut.truth, naive=cut.said, windows=(cut.judged_before((LEDGER_HOP, STORE_HOP)), second))


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
    return Outcome(truth=cut.truth, naive=cut.said, windows=(cut.judged_before((STORE_HOP,)), second))


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
    shop = lab.shop.open_shop(topic=_ONE_COPY_IS_ENOUGH)
    safe, cut, after = (lab.random.randint(5, 100) for _ in range(3))
    # Of days long past, the new leader would not remember the producer, and take any sequence.
    yesterday = (datetime.now(UTC) - BORN).days - 1
    made = orders(range(safe + cut + after), day=yesterday)
    shop.write("outbox", made)
    java = lab.java().producer(shop.bootstrap, enable_idempotence=True, acks="all", retry_backoff_ms=50)
    producer = lab.ends.enter_context(java)

    def send(some: list[Order]) -> None:
        for sent in [producer.send(shop.topic, **shop.record(order)) for order in some]:
            sent.get()

    send(made[:safe])
    _truncate(lab, lambda: send(made[safe : safe + cut]))
    assert _end(lab) == safe
    send(made[safe + cut :])
    shop.load()
    kept = safe + after
    return Outcome(
        truth=f"Here {len(made)} orders were acknowledged to one producer, and {cut} of them are gone.",
        naive=(
            *_well(shop),
            # It looks at the producer id alone, as most do: the epoch's sequences seem to come a second time.
            Naive(said=naive.sequences(shop.bootstrap, shop.topic), expected=f"{min(safe, after)} repeated"),
        ),
        windows=(
            Window(
                judged=shop.day(yesterday),
                expected=_left_behind(made[safe : safe + cut], kept, (safe, kept)),
            ),
        ),
    )


def _left_behind(lost: list[Order], kept: int, changed: tuple[int, int]) -> Judged:
    """A day of which the old leader took orders along; `changed`: the offsets under the new one."""
    return Judged(
        state=WindowState.GAPS.value,
        accounting={"span": kept, "data": kept},
        matched={LEDGER_HOP: kept, STORE_HOP: kept},
        found={LEDGER_HOP: {order["id"]: ("missing", "leader_changed") for order in lost}},
        incidents=(("leader_changed", 0, *changed),),
        reason="",
    )


# Acknowledged by the leader alone


@dataclass(frozen=True, kw_only=True)
class _LeftBehind:
    """Orders that the dead leader had acknowledged alone, and how many others there are."""

    lost: list[Order]
    safe: int
    kept: int
    said: tuple[Naive, ...]

    @property
    def truth(self) -> str:
        return f"Here {self.kept + len(self.lost)} orders were acknowledged, and {len(self.lost)} of them are gone."


def _fail_over(lab: Lab, *, has_ledger: bool) -> _LeftBehind:
    """Orders are acknowledged by a leader that dies before its followers, which are in sync, have them."""
    shop = lab.shop.open_shop(topic=_ONE_COPY_IS_ENOUGH, has_ledger=has_ledger)
    numbers = iter(range(10_000))

    def some() -> list[Order]:
        return orders([next(numbers) for _ in range(lab.random.randint(5, 100))])

    made = some()
    shop.write("outbox", made)
    shop.send(made, settings={"acks": "all"})
    client = shop.producer(acks=1)
    lost = _acknowledged_alone(lab, client, made, some)
    state = lab.cluster.wait_for_leader(shop.topic)
    assert len(state.isr) > 1, "the election was not clean"
    survived = _end(lab) - len(made)  # what a follower had asked for before it was frozen
    safe, lost = len(made) + survived, lost[survived:]
    after = some()
    shop.write("outbox", after)
    shop.send_in_batches([after], client)
    shop.load()
    lab.cluster.heal()
    said = (*_well(shop), Naive(said=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL))
    return _LeftBehind(lost=lost, safe=safe, kept=safe + len(after), said=said)


def _acknowledged_alone(lab: Lab, client: Producer, made: list[Order], some: Callable[[], list[Order]]) -> list[Order]:
    """Orders that only the leader had when it was killed. Tries that took too long are added to `made`, and done again:
    the controller would have noticed the freeze, and the followers would no longer have been in sync."""
    cluster, shop = lab.cluster, lab.shop
    for _ in range(_TRIES):
        state = cluster.wait_for_leader(shop.topic)
        decoy = _decoy(lab, state.replicas, state.leader)
        alone = some()
        shop.write("outbox", alone)
        frozen_at = time.monotonic()
        cluster.pause(*[node for node in BROKERS if node != state.leader])
        _answer_parked_fetches(lab, decoy)
        shop.send_in_batches([alone], client)
        is_in_time = time.monotonic() - frozen_at < SESSION_SECONDS / 2
        if is_in_time:
            cluster.kill(state.leader)
        cluster.resume(*BROKERS)
        if is_in_time:
            return alone
        made += alone
        cluster.heal()
    raise AssertionError(f"the machine was too slow {_TRIES} times in a row")


def _decoy(lab: Lab, replicas: tuple[int, ...], leader: int) -> str:
    """A topic whose records travel in the same fetches as those of the shop's topic."""
    name = f"decoy-{lab.random.getrandbits(64):x}"
    lab.cluster.create_topic(name, replicas=[[leader, *(node for node in replicas if node != leader)]])
    lab.ends.callback(lab.cluster.delete_topic, name)
    return name


def _answer_parked_fetches(lab: Lab, decoy: str) -> None:
    """Each follower has one fetch waiting at the leader. A record of the decoy answers it; then they have none."""
    client = lab.shop.producer(acks=1)
    for _ in range(2):
        client.produce(decoy, b"decoy", partition=0)
        assert client.flush(30) == 0


@scenario(
    row=10,
    name="acks=1, and the leader dies before its followers have the records",
    happens=(
        "The leader acknowledges alone and dies. A follower in sync takes over, as it should: the election is clean, "
        "no offset is skipped, and acknowledged records are gone."
    ),
    made="Followers are frozen (SIGSTOP), orders are sent with acks=1, the leader is killed, the followers go on.",
    why=(
        "Only the leader epoch shows that something happened; whether it took records along, the ledger says. A loss "
        "with a change of leader has that for its cause."
    ),
)
def acks_of_one(lab: Lab) -> Outcome:
    left = _fail_over(lab, has_ledger=True)
    window = Window(judged=lab.shop.day(), expected=_left_behind(left.lost, left.kept, (left.safe, left.kept)))
    return Outcome(truth=left.truth, naive=left.said, windows=(window,))


@scenario(
    row=10,
    name="acks=1, the leader dies, and there is no ledger",
    happens="The same, and nothing but the topic says what was sent.",
    made="As before, with a pipeline that begins at the topic.",
    why=(
        "Not provable: nobody remembers what is gone. From the topic on all is proven; the change of leader is told, "
        "since with acks=1 it may have cost records."
    ),
)
def acks_of_one_without_ledger(lab: Lab) -> Outcome:
    left = _fail_over(lab, has_ledger=False)
    window = Window(
        judged=lab.shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": left.kept, "data": left.kept},
            matched={STORE_HOP: left.kept},
            incidents=(("leader_changed", 0, left.safe, left.kept),),
        ),
    )
    return Outcome(truth=left.truth, naive=left.said, windows=(window,))
