"""Make records that producers repeat, or believe to be committed when they are not (rows 5, 12, 13, 14)."""

from concurrent.futures import ThreadPoolExecutor

from makewhole.kafka.offsets import high_watermarks
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.lab import naive, raw
from tests.lab.judged import Judged
from tests.lab.processes.relay import relay
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

_CUT_IN_BATCHES = {"linger_ms": 60_000, "retry_backoff_ms": 50}
"""Send what is produced before a flush as one request, and retry it soon."""


def _batches(lab: Lab) -> list[list[Order]]:
    """Orders of a day, in batches of several sizes."""
    sizes = [lab.random.randint(1, 30) for _ in range(lab.random.randint(3, 8))]
    made = iter(orders(range(sum(sizes))))
    return [[next(made) for _ in range(size)] for size in sizes]


def _flat(batches: list[list[Order]]) -> list[Order]:
    return [order for batch in batches for order in batch]


def _repeated(shop: LabShop, context: WindowContext, made: list[Order], again: list[Order], cause: str) -> Window:
    """A window, when some orders are twice in the topic and the loader wrote both copies."""
    single = len(made) - len(again)
    records = len(made) + len(again)
    return Window(
        judged=shop.close(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": records, "data": records},
            matched={LEDGER_HOP: single, STORE_HOP: single},
            found={LEDGER_HOP: _all(again, cause), STORE_HOP: _all(again, "upstream_duplicate")},
            reason="",
        ),
    )


def _all(again: list[Order], cause: str) -> Found:
    return {order["id"]: ("duplicate", cause) for order in again}


@scenario(
    row=5,
    name="A delayed EndTxn ends the wrong transaction (KAFKA-17754)",
    happens=(
        "An abort is delayed on its way, sent again by the client, and done. Then the delayed one arrives and aborts "
        "the first half of the next transaction, whose second half is committed: the client got the answer that all is."
    ),
    made=(
        "A proxy holds the first EndTxn(abort) of a librdkafka producer until its next transaction has sent records to "
        "one partition; those to another partition follow, and the commit succeeds."
    ),
    why=(
        "The log looks as if the producer had wanted it so, and only the ledger knows better: what it says was sent "
        "has no copy but aborted ones."
    ),
)
def delayed_end_of_transaction(lab: Lab) -> Outcome:
    shop, torn, answer = _torn(lab, has_ledger=True)
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting=torn.accounting,
            matched={LEDGER_HOP: torn.kept, STORE_HOP: torn.kept},
            found={LEDGER_HOP: {order["id"]: ("missing", "aborted_transaction") for order in torn.lost}},
            reason="",
        ),
    )
    return Outcome(truth=torn.truth, naive=answer, windows=(window,))


@scenario(
    row=5,
    name="A delayed EndTxn ends the wrong transaction, and there is no ledger",
    happens="The same, and nothing but the topic says what was sent.",
    made="As before, with a pipeline that begins at the topic.",
    why=(
        "Not provable: an abort that was not intended looks like one that was. The certificate says so: it is "
        "from the log on, and does not exclude that records of aborted transactions should have been committed."
    ),
)
def delayed_end_of_transaction_without_ledger(lab: Lab) -> Outcome:
    shop, torn, answer = _torn(lab, has_ledger=False)
    window = Window(
        judged=shop.day(),
        expected=Judged(state=WindowState.CERTIFIED.value, accounting=torn.accounting, matched={STORE_HOP: torn.kept}),
    )
    return Outcome(truth=torn.truth, naive=answer, windows=(window,))


class _Torn:
    """A transaction whose first part was aborted and whose second was committed."""

    def __init__(self, discarded: list[Order], lost: list[Order], kept: list[Order]) -> None:
        self.lost = lost
        self.kept = len(kept)
        aborted = len(discarded) + len(lost)
        # Markers: the wanted abort and the late one in one partition, the commit in the other.
        self.accounting = {"span": aborted + len(kept) + 3, "data": len(kept), "control": 3, "aborted": aborted}
        self.truth = (
            f"Here a transaction of {len(lost) + len(kept)} orders was acknowledged as committed; "
            f"{len(lost)} of them were aborted."
        )


def _torn(lab: Lab, *, has_ledger: bool) -> tuple[LabShop, _Torn, tuple[Naive, ...]]:
    shop = lab.shop.open_shop(partitions=2, has_ledger=has_ledger)
    torn_at = lab.random.randint(0, 1)
    made = orders(range(lab.random.randint(20, 100)))
    first = [order for order in made if order["number"] % 2 == torn_at]
    second = [order for order in made if order["number"] % 2 != torn_at]
    # Tried first, aborted on purpose, and not in the ledger.
    discarded = [
        order for order in orders(range(1000, 1000 + 2 * lab.random.randint(1, 20))) if order["number"] % 2 == torn_at
    ]
    shop.write("outbox", made)
    client = shop.producer(
        bootstrap_servers=lab.cluster.proxied_bootstrap,
        transactional_id=f"tx-{shop.topic}",
        socket_timeout_ms=1000,
        retry_backoff_ms=50,
    )
    client.init_transactions(60)
    late = lab.cluster.proxy.add(Rule(api=Api.END_TXN, fault=Fault.HOLD))
    client.begin_transaction()
    shop.send_in_batches([discarded], client)
    client.abort_transaction(60)
    late.wait_until_hit()
    client.begin_transaction()
    shop.send_in_batches([first], client)
    late.release()
    late.wait_until_done()
    _wait_for_markers(lab, shop, torn_at, len(discarded) + len(first) + 2)
    shop.send_in_batches([second], client)
    client.commit_transaction(60)
    shop.load()
    answer = (
        Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL),
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
    )
    return shop, _Torn(discarded, first, second), answer


def _wait_for_markers(lab: Lab, shop: LabShop, partition: int, end: int) -> None:
    """The coordinator answers before it has written the markers."""
    lab.cluster.wait(
        "the late abort's marker",
        lambda: high_watermarks(lab.cluster.connection, shop.topic)[partition] == end,
    )


@scenario(
    row=12,
    name="A retry without idempotence",
    happens="The answer to a produce request is lost; a producer without idempotence sends the batch again.",
    made="`enable.idempotence=false`; a proxy loses one answer to a produce request and cuts the connection.",
    why="The two copies have no producer id (-1): no sequence can repeat. The business key does.",
)
def retry_without_idempotence(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    batches = _batches(lab)
    hit = lab.random.randrange(len(batches))
    made, again = _flat(batches), batches[hit]
    shop.write("outbox", made)
    client = shop.producer(bootstrap_servers=lab.cluster.proxied_bootstrap, enable_idempotence=False, **_CUT_IN_BATCHES)
    lost = lab.cluster.proxy.add(Rule(api=Api.PRODUCE, fault=Fault.LOSE_ANSWER, first=hit + 1))
    shop.send_in_batches(batches, client)
    lost.wait_until_done()
    shop.load()
    return Outcome(
        truth=f"Here {len(made)} orders were sent, {len(again)} of them twice, and the store has what the topic has.",
        naive=(
            Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL),
            Naive(
                answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
                expected=naive.WELL,
            ),
            Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
        ),
        windows=(_repeated(shop, shop.open(), made, again, "retry_without_idempotence"),),
    )


@scenario(
    row=13,
    name="An application sends again after a restart",
    happens=(
        "A relay is killed after its records were acknowledged and before it noted that. Started again, it sends them "
        "again: idempotent, and with a new producer id, so that no broker can know."
    ),
    made="A relay process sends the ledger's rows batch by batch and keeps a checkpoint; SIGKILL between the two.",
    why="Every sequence is without fault. The business key is there twice, under two producer ids.",
    is_short=True,
)
def resend_after_restart(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    batches = _batches(lab)
    made, killed_at = _flat(batches), lab.random.randrange(len(batches))
    shop.write("outbox", made)
    relay(shop, batches, killed_at=killed_at)
    relay(shop, batches)
    shop.load()
    again = batches[killed_at]
    return Outcome(
        truth=f"Here {len(made)} orders were sent, {len(again)} of them by both lives of the relay.",
        naive=(
            Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=naive.WELL),
            Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
        ),
        windows=(_repeated(shop, shop.open(), made, again, "application_resend"),),
    )


@scenario(
    row=14,
    name="A retry after the producer's state expired",
    happens=(
        "The answer to an idempotent producer's batch is lost, and it stalls for longer than brokers remember "
        "producers. Its retry is taken for something new."
    ),
    made=(
        "`producer.id.expiration.ms` is lowered; a proxy loses an answer and holds the retry until the broker has "
        "forgotten the producer."
    ),
    why="The same producer id, epoch and sequence are there twice, which no broker that remembers would allow.",
)
def retry_after_expiry(lab: Lab) -> Outcome:
    shop, proxy = lab.shop.open_shop(), lab.cluster.proxy
    batches = _batches(lab)
    hit = lab.random.randrange(len(batches))
    made, again = _flat(batches), batches[hit]
    shop.write("outbox", made)
    client = shop.producer(bootstrap_servers=lab.cluster.proxied_bootstrap, enable_idempotence=True, **_CUT_IN_BATCHES)
    lost = proxy.add(Rule(api=Api.PRODUCE, fault=Fault.LOSE_ANSWER, first=hit + 1))
    stalled = proxy.add(Rule(api=Api.PRODUCE, fault=Fault.HOLD, first=hit + 2))
    with ThreadPoolExecutor() as sender:
        sending = sender.submit(shop.send_in_batches, batches, client)
        stalled.wait_until_hit()
        assert lost.done == 1
        _forget_producers(lab, shop)
        stalled.release()
        sending.result()
    shop.load()
    context = shop.open()
    window = _repeated(shop, context, made, again, "sequence_repeated")
    [numbering] = shop.evidence(context, LEDGER_HOP, again[0]["id"])["sequences"]
    assert (numbering["repeated"], numbering["missing"], numbering["epochs"]) == (len(again), 0, 1)
    return Outcome(
        truth=f"Here {len(made)} orders were sent by one idempotent producer, {len(again)} of them twice.",
        naive=(
            Naive(answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=naive.WELL),
            Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
            Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=f"{len(again)} repeated"),
        ),
        windows=(window,),
    )


def _forget_producers(lab: Lab, shop: LabShop) -> None:
    """Make the brokers' memory of producers run out, and wait until it has."""
    leader = lab.cluster.port(lab.cluster.leader(shop.topic))
    lab.cluster.change_settings(producer_id_expiration_ms=100)
    lab.cluster.wait("the producer to be forgotten", lambda: not raw.producers(leader, shop.topic, 0))
