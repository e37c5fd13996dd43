"""Make markers, aborted and open batches, and epochs that grow with every transaction (rows 1 to 4, 15)."""

from makewhole.kafka.open_transactions import open_transactions
from makewhole.model.window import WindowState
from tests.lab import naive, raw
from tests.lab.judged import Judged
from tests.lab.processes.writer import Writer
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

CERTIFIED = WindowState.CERTIFIED.value


@scenario(
    row=1,
    name="Transaction markers occupy offsets",
    happens="Every commit writes a marker into each partition of the transaction, and the marker takes an offset.",
    made="As many committed transactions of one record each, by one librdkafka producer.",
    why="The gap in the offsets is explained one by one: each is a control record. No key lacks its copy.",
)
def transaction_markers(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(30, 100)))
    count = len(made)
    shop.write("outbox", made)
    shop.transactions([[order] for order in made], is_committed=lambda _: True)
    shop.load()
    return Outcome(
        truth=f"Here {count} orders were sent, one transaction each, and all of them reached the store.",
        naive=(
            Naive(answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=f"{count} lost"),
            Naive(answer=naive.records(shop.bootstrap, shop.topic, count), expected=naive.WELL),
        ),
        windows=(
            Window(
                judged=shop.day(),
                expected=Judged(
                    state=CERTIFIED,
                    accounting={"span": 2 * count, "data": count, "control": count},
                    matched={LEDGER_HOP: count, STORE_HOP: count},
                ),
            ),
        ),
    )


@scenario(
    row=2,
    name="Aborted batches",
    happens="The records of an aborted transaction stay in the log, among the committed ones, and keep their offsets.",
    made="Every third transaction is aborted; the next one sends its orders again.",
    why=(
        "An aborted copy is no copy: it is counted, named by the marker that aborted it, and left out. So an order "
        "that was sent again is there once, not twice."
    ),
    covered_by=("tests/integration/spark/test_windows.py",),
)
def aborted_batches(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    size = lab.random.randint(2, 6)
    made = orders(range(size * 2 * lab.random.randint(4, 12)))
    wanted = [made[at : at + size] for at in range(0, len(made), size)]
    # Pairs of batches go out in three transactions: the first; the second, aborted; the second again.
    attempts = [batch for pair in zip(wanted[::2], wanted[1::2], strict=True) for batch in (pair[0], pair[1], pair[1])]
    shop.write("outbox", made)
    shop.transactions(attempts, is_committed=lambda number: number % 3 != 1)
    shop.load()
    count, aborted = len(made), len(made) // 2
    return Outcome(
        truth=f"Here {count} orders were sent, {aborted} of them twice, once in vain; the store has each of them once.",
        naive=(
            Naive(
                answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
                expected=f"{aborted + len(attempts)} lost",
            ),
            Naive(
                answer=naive.records(shop.bootstrap, shop.topic, count, "read_uncommitted"),
                expected=f"{aborted} repeated",
            ),
        ),
        windows=(
            Window(
                judged=shop.day(),
                expected=Judged(
                    state=CERTIFIED,
                    accounting={
                        "span": count + aborted + len(attempts),
                        "data": count,
                        "control": len(attempts),
                        "aborted": aborted,
                    },
                    matched={LEDGER_HOP: count, STORE_HOP: count},
                ),
            ),
        ),
    )


@scenario(
    row=15,
    name="A producer epoch per transaction (KIP-890)",
    happens="Java's producers of Kafka 4 raise their epoch with every transaction and number its records from 0 again.",
    made="Fifty transactions of a Java producer, a few records each.",
    why=(
        "A sequence number means something within its producer epoch and partition only. By that key nothing repeats, "
        "and by the business key neither."
    ),
)
def epoch_per_transaction(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    sizes = [lab.random.randint(1, 5) for _ in range(50)]
    made = orders(range(sum(sizes)))
    shop.write("outbox", made)
    waiting = iter(made)
    with lab.java().producer(shop.bootstrap, transactional_id=f"tx-{shop.topic}", retry_backoff_ms=5) as producer:
        producer.init_transactions()
        for size in sizes:
            with producer.transaction():
                for order in (next(waiting) for _ in range(size)):
                    producer.send(shop.topic, **shop.record(order))
    shop.load()
    count = len(made)
    return Outcome(
        truth=f"Here {count} orders were sent in {len(sizes)} transactions, each once, and all reached the store.",
        naive=(
            Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=f"{count - max(sizes)} repeated"),
            Naive(
                answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=f"{len(sizes)} lost"
            ),
        ),
        windows=(
            Window(
                judged=shop.day(),
                expected=Judged(
                    state=CERTIFIED,
                    accounting={"span": count + len(sizes), "data": count, "control": len(sizes)},
                    matched={LEDGER_HOP: count, STORE_HOP: count},
                ),
            ),
        ),
    )


@scenario(
    row=3,
    name="An open transaction holds the stable offset",
    happens=(
        "While a transaction is open, no read_committed consumer is given anything behind its first record, not even "
        "records of other producers."
    ),
    made="A producer is paused (SIGSTOP) in the middle of its transaction; another one sends plain records behind it.",
    why=(
        "What lies behind the open transaction is in flight, neither lost nor there: the window ends before it and the "
        "keys are handed over by name to the next window, which judges them when the transaction has ended."
    ),
    covered_by=("tests/integration/spark/test_windows.py",),
)
def open_transaction(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    before, inside, behind = (lab.random.randint(5, 40) for _ in range(3))
    made = orders(range(before + inside + behind))
    shop.write("outbox", made)
    shop.send(made[:before])
    writer = lab.ends.enter_context(Writer(shop.bootstrap, f"tx-{shop.topic}", timeout_ms=900_000))
    writer.begin()
    writer.send(shop.topic, [shop.record(order) for order in made[before : before + inside]])
    writer.pause()
    shop.send(made[before + inside :])
    shop.load()
    answer = (
        Naive(
            answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
            expected=f"{inside + behind} lost",
        ),
        Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made)), expected=f"{inside + behind} lost"),
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=f"{inside + behind} not consumed"),
    )
    first = Window(
        label="while it is open",
        judged=shop.day(),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": before, "data": before},
            matched={LEDGER_HOP: before, STORE_HOP: before},
            found={LEDGER_HOP: {order["id"]: ("pending", "in_flight") for order in made[before:]}},
            incidents=(("open_transaction", 0, before, len(made)),),
        ),
    )
    is_committed = lab.random.random() < 0.5
    writer.resume()
    writer.commit() if is_committed else writer.abort()
    lost = [] if is_committed else made[before : before + inside]
    following = orders(range(1000, 1000 + lab.random.randint(5, 40)), 1)
    shop.write("outbox", following)
    shop.send(following)
    shop.load()
    aborted = {"aborted": inside} if lost else {}
    arrived = inside + behind - len(lost) + len(following)
    second = Window(
        label="when it has been committed" if is_committed else "when it has been aborted",
        judged=shop.day(1),
        expected=Judged(
            state=(WindowState.GAPS if lost else WindowState.CERTIFIED).value,
            accounting={"span": arrived + len(lost) + 1, "data": arrived, "control": 1, **aborted},
            matched={LEDGER_HOP: arrived, STORE_HOP: arrived},
            found={LEDGER_HOP: {order["id"]: ("missing", "aborted_transaction") for order in lost}} if lost else {},
            reason="" if lost else None,
        ),
    )
    return Outcome(
        truth=(
            f"Here {inside} orders are in the open transaction and {behind} behind it; then the producer goes on and "
            f"{'commits' if is_committed else 'aborts'}."
        ),
        naive=answer,
        windows=(first, second),
    )


@scenario(
    row=4,
    name="A hanging transaction (KIP-664)",
    happens=(
        "Records of a transaction are in the log and no coordinator knows of it: a late write from a producer that was "
        "fenced, on a cluster that does not verify partitions. It is never ended, and holds the stable offset."
    ),
    made=(
        "With `transaction.partition.verification.enable=false`, a hand-made transactional batch is produced that was "
        "never announced to the coordinator. Then an operator aborts it, and the application sends its orders again."
    ),
    why=(
        "No coordinator speaks for the transaction, so it will not end by itself: the window is not certified while it "
        "hangs, and nothing behind it is called lost. Once it was aborted, its keys are judged like all others."
    ),
    covered_by=("tests/integration/audit/test_open_transactions.py",),
)
def hanging_transaction(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    before, inside, behind = (lab.random.randint(5, 40) for _ in range(3))
    made = orders(range(before + inside + behind))
    hanging = made[before : before + inside]
    shop.write("outbox", made)
    shop.send(made[:before])
    _leave_hanging(lab, hanging)
    shop.send(made[before + inside :])
    shop.load()
    beyond = inside + behind
    answer = (
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=f"{beyond} not consumed"),
        Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made)), expected=f"{beyond} lost"),
    )
    first = Window(
        label="while it hangs",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": before, "data": before},
            matched={LEDGER_HOP: before, STORE_HOP: before},
            found={LEDGER_HOP: {order["id"]: ("pending", "in_flight") for order in made[before:]}},
            incidents=(("hanging_transaction", 0, before, len(made)),),
            reason="",
        ),
    )
    _abort(lab)
    following = orders(range(1000, 1000 + lab.random.randint(5, 40)), 1)
    shop.write("outbox", following)
    shop.send([*hanging, *following])
    shop.load()
    arrived = inside + behind + len(following)
    second = Window(
        label="when it was aborted, and its orders sent again",
        judged=shop.day(1),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": inside + 1 + arrived, "data": arrived, "control": 1, "aborted": inside},
            matched={LEDGER_HOP: arrived, STORE_HOP: arrived},
        ),
    )
    truth = f"Here {inside} orders are in the hanging transaction and {behind} behind it."
    return Outcome(truth=truth, naive=answer, windows=(first, second))


def _leave_hanging(lab: Lab, made: list[Order]) -> None:
    """A transactional batch of a producer whose coordinator knows of no transaction."""
    lab.cluster.change_settings(transaction_partition_verification_enable="false")
    name = f"hanging-{lab.shop.topic}"
    leader = lab.cluster.port(lab.cluster.leader(lab.shop.topic))
    producer = raw.init_producer_id(lab.cluster.port(raw.coordinator(leader, name)), name)
    content = raw.batch(
        [(record["key"], record["value"]) for record in map(lab.shop.record, made)],
        producer=producer,
        base_sequence=0,
        is_transactional=True,
        timestamp_ms=milliseconds(made[0]["at"]),
    )
    raw.produce(leader, lab.shop.topic, 0, content, transactional_id=name)


def _abort(lab: Lab) -> None:
    """Do what `kafka-transactions.sh abort` does: write an abort marker into the partition, past any coordinator."""
    (hanging,) = open_transactions(lab.cluster.connection, lab.shop.topic)
    jvm = lab.java().jvm
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", lab.cluster.bootstrap)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        admin.abortTransaction(
            jvm.org.apache.kafka.clients.admin.AbortTransactionSpec(
                jvm.org.apache.kafka.common.TopicPartition(lab.shop.topic, hanging.partition),
                hanging.producer_id,
                hanging.producer_epoch,
                hanging.coordinator_epoch,
            )
        ).all().get()
    finally:
        admin.close()
