"""Have brokers lose what they acknowledged, though the election was clean (row 10)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from confluent_kafka import Producer

from makewhole.kafka.offsets import high_watermarks
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.cluster import BROKERS, SESSION_SECONDS
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

ONE_COPY_IS_ENOUGH = {"min_insync_replicas": 1}
_TRIES = 5


def well(shop: LabShop) -> tuple[Naive, ...]:
    """Checks that look at the log as it is now, and find it in order."""
    return (
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
        Naive(answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=naive.WELL),
    )


def end_of_log(lab: Lab) -> int:
    """Where the next record would go."""
    return high_watermarks(lab.cluster.connection, lab.shop.topic)[0]


def left_behind(lost: list[Order], kept: int, changed: tuple[int, int]) -> Judged:
    """A day of which the old leader took orders along; `changed`: the offsets under the new one."""
    return Judged(
        state=WindowState.GAPS.value,
        accounting={"span": kept, "data": kept},
        matched={LEDGER_HOP: kept, STORE_HOP: kept},
        found={LEDGER_HOP: {order["id"]: ("missing", "leader_changed") for order in lost}},
        incidents=(("leader_changed", 0, *changed),),
        reason="",
    )


@dataclass(frozen=True, kw_only=True)
class _LeftBehind:
    """Orders that the dead leader had acknowledged alone, and how many others there are."""

    lost: list[Order]
    safe: int
    kept: int
    answer: tuple[Naive, ...]

    @property
    def truth(self) -> str:
        return f"Here {self.kept + len(self.lost)} orders were acknowledged, and {len(self.lost)} of them are gone."


def _fail_over(lab: Lab, *, has_ledger: bool) -> _LeftBehind:
    """Orders are acknowledged by a leader that dies before its followers, which are in sync, have them."""
    shop = lab.shop.open_shop(topic=ONE_COPY_IS_ENOUGH, has_ledger=has_ledger)
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
    survived = end_of_log(lab) - len(made)  # what a follower had asked for before it was frozen
    safe, lost = len(made) + survived, lost[survived:]
    after = some()
    shop.write("outbox", after)
    shop.send_in_batches([after], client)
    lab.cluster.heal()
    kept = safe + len(after)  # readers are given what all replicas have, and acks=1 did not wait for that
    lab.cluster.wait("all replicas to have all records", lambda: end_of_log(lab) == kept)
    shop.load()
    answer = (*well(shop), Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL))
    return _LeftBehind(lost=lost, safe=safe, kept=kept, answer=answer)


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
    window = Window(judged=lab.shop.day(), expected=left_behind(left.lost, left.kept, (left.safe, left.kept)))
    return Outcome(truth=left.truth, naive=left.answer, windows=(window,))


@scenario(
    row=10,
    name="acks=1, the leader dies, and there is no ledger",
    happens="The same, and nothing but the topic says what was sent.",
    made="As before, with a pipeline that begins at the topic.",
    why=(
        "Not provable: what is gone is recorded nowhere. A leader may acknowledge alone here, and what carries no "
        "producer id may have been sent with acks=1: so the window is not known. Who writes `reach: log` accepts that; "
        "the certificate then says that it is proven from the log on, and names the change of leader as not excluded."
    ),
)
def acks_of_one_without_ledger(lab: Lab) -> Outcome:
    left = _fail_over(lab, has_ledger=False)
    expected = Judged(
        state=WindowState.NOT_KNOWN.value,
        accounting={"span": left.kept, "data": left.kept},
        matched={STORE_HOP: left.kept},
        incidents=(("leader_changed", 0, left.safe, left.kept),),
        reason="not proven: the leader of orders/0 changed: leader epochs ",
    )
    first = Window(label="as it is", judged=lab.shop.day(), expected=expected)
    lab.shop.describe(has_ledger=False, reach="log")
    accepted = replace(expected, state=WindowState.CERTIFIED.value, reason=None)
    second = Window(label="with `reach: log`", judged=lab.shop.day(), expected=accepted)
    return Outcome(truth=left.truth, naive=left.answer, windows=(first, second))


@scenario(
    row=10,
    name="The leader dies, nothing was acknowledged by it alone, and there is no ledger",
    happens="Every record is acknowledged by two replicas before the leader dies; one of them takes over.",
    made=(
        "`min.insync.replicas=2`, an idempotent producer with acks=all; the leader is killed, the producer goes on. "
        "The pipeline begins at the topic."
    ),
    why=(
        "It happens every day, and makes no window doubtful: the settings of the topic let nothing be lost, every "
        "record carries the id of a producer that waits for all replicas in sync, and no numbering has a gap."
    ),
)
def harmless_change_of_leader(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(has_ledger=False)
    before, after = (lab.random.randint(5, 100) for _ in range(2))
    made = orders(range(before + after))
    client = shop.producer(acks="all", enable_idempotence=True, linger_ms=60_000)
    shop.send_in_batches([made[:before]], client)
    state = lab.cluster.state(shop.topic)
    lab.cluster.kill(state.leader)
    lab.cluster.wait_for_leader(shop.topic, after_epoch=state.leader_epoch)
    shop.send_in_batches([made[before:]], client)
    lab.cluster.heal()
    shop.load()
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={STORE_HOP: len(made)},
            incidents=(("leader_changed", 0, before, len(made)),),
        ),
    )
    return Outcome(
        truth=f"Here {before} orders came before the leader died and {after} after it; none is gone.",
        naive=well(shop),
        windows=(window,),
    )
