"""Have topics and numbers start again: wrapped sequences, a topic made again, more partitions (rows 16, 17, 18)."""

from collections import Counter

from confluent_kafka.admin import NewPartitions

from makewhole.model.window import WindowState
from tests.lab import naive, raw
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

CERTIFIED = WindowState.CERTIFIED.value
SEQUENCES = 2**31
LAST_BEFORE_THE_WRAP = 2_147_483_640


@scenario(
    row=16,
    name="A sequence wraps at 2^31−1",
    happens="Sequence numbers are 31 bits long: after 2,147,483,647 a producer goes on with 0.",
    made="Hand-made batches of one producer id, the first of which begins at sequence 2,147,483,640.",
    why="The next number after 2^31−1 is 0. Nothing is skipped, no key lacks its copy.",
)
def sequence_wraps(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    sizes = [lab.random.randint(1, 12) for _ in range(lab.random.randint(3, 8))] + [8]
    made = orders(range(sum(sizes)))
    shop.write("outbox", made)
    port = lab.cluster.port(lab.cluster.leader(shop.topic))
    producer, sequence, waiting = raw.init_producer_id(port), LAST_BEFORE_THE_WRAP, iter(made)
    for size in sizes:
        batch = [next(waiting) for _ in range(size)]
        records = [(record["key"], record["value"]) for record in map(shop.record, batch)]
        moment = milliseconds(batch[0]["at"])
        content = raw.batch(records, producer=producer, base_sequence=sequence, timestamp_ms=moment)
        raw.produce(port, shop.topic, 0, content)
        sequence = (sequence + size) % SEQUENCES
    shop.load()
    count = len(made)
    return Outcome(
        truth=f"Here {count} orders were sent by one producer, each once, and all of them reached the store.",
        naive=(Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=f"{SEQUENCES - count} lost"),),
        windows=(
            Window(
                judged=shop.day(),
                expected=Judged(
                    state=CERTIFIED,
                    accounting={"span": count, "data": count},
                    matched={LEDGER_HOP: count, STORE_HOP: count},
                ),
            ),
        ),
    )


@scenario(
    row=17,
    name="A topic made again under the same name",
    happens="The topic was deleted and created again: the same name, the same offsets, other records.",
    made=(
        "A day of orders; then some more, the topic deleted and created again, and the rest of the day's orders sent "
        "to the new one, some of the lost ones among them."
    ),
    why=(
        "A range belongs to a topic id, not to a name: the new topic is read from its beginning. What the old one held "
        "after the last window is gone and cannot be read; only the ledger tells what is missing because of that."
    ),
    covered_by=("tests/integration/spark/test_silence.py",),
)
def topic_made_again(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    before = orders(range(lab.random.randint(20, 60)))
    after = orders(range(100, 100 + lab.random.randint(20, 60)), 1)
    loaded, unloaded, again = (lab.random.randint(1, 5) for _ in range(3))
    lost, gone = after[: loaded + unloaded], after[: loaded + unloaded + again]
    shop.write("outbox", before)
    shop.send(before)
    shop.load()
    first = Window(
        label="before",
        judged=shop.day(),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": len(before), "data": len(before)},
            matched={LEDGER_HOP: len(before), STORE_HOP: len(before)},
        ),
    )
    shop.write("outbox", after)
    shop.send(gone[:loaded])
    shop.load()
    shop.send(gone[loaded:])
    lab.cluster.delete_topic(shop.topic)
    shop.make_topic()
    sent = [order for order in after if order not in lost]
    shop.send(sent)
    shop.load(is_from_beginning=True)
    rows = len(before) + len(after)
    answer = (
        Naive(answer=naive.records(shop.bootstrap, shop.topic, rows), expected=f"{rows - len(sent)} lost"),
        Naive(
            answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
            expected=f"{len(before) + loaded} repeated",
        ),
    )
    second = Window(
        label="after",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(sent), "data": len(sent)},
            matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent)},
            found={
                LEDGER_HOP: {order["id"]: ("missing", "topic_recreated") for order in lost},
                STORE_HOP: {order["id"]: ("undecidable", "topic_recreated") for order in lost[:loaded]},
            },
            incidents=(("topic_recreated", None, None, None),),
            reason="",
        ),
    )
    truth = (
        f"Here {len(gone)} orders were in the old topic only when it was deleted; {again} of them were sent again, "
        f"{len(lost)} were not, and {loaded} of these had reached the store before."
    )
    return Outcome(truth=truth, naive=answer, windows=(first, second))


@scenario(
    row=17,
    name="A topic made again, and nothing upstream",
    happens="The same, in a pipeline that begins at the topic: nothing says what the old topic held when it went.",
    made="A day of orders; then more, loaded or not; the topic is deleted and created again; more orders follow.",
    why=(
        "Every record of the new topic has its row, and yet the window is not proven: what came to the old topic after "
        "the last window may have been lost, which cannot be shown."
    ),
)
def topic_made_again_without_ledger(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(has_ledger=False)
    before = orders(range(lab.random.randint(20, 60)))
    loaded, unloaded, sent = (lab.random.randint(1, 30) for _ in range(3))
    after = orders(range(100, 100 + loaded + unloaded + sent), 1)
    shop.send(before)
    shop.load()
    first = Window(
        label="before",
        judged=shop.day(),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": len(before), "data": len(before)},
            matched={STORE_HOP: len(before)},
        ),
    )
    shop.send(after[:loaded])
    shop.load()
    shop.send(after[loaded : loaded + unloaded])
    lab.cluster.delete_topic(shop.topic)
    shop.make_topic()
    shop.send(after[loaded + unloaded :])
    shop.load(is_from_beginning=True)
    answer = (Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),)
    second = Window(
        label="after",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": sent, "data": sent},
            matched={STORE_HOP: sent},
            found={STORE_HOP: {order["id"]: ("undecidable", "topic_recreated") for order in after[:loaded]}},
            incidents=(("topic_recreated", None, None, None),),
            reason="",
        ),
    )
    truth = (
        f"Here {loaded + unloaded} orders were in the old topic only when it was deleted, and {unloaded} of them never "
        "reached the store."
    )
    return Outcome(truth=truth, naive=answer, windows=(first, second))


@scenario(
    row=18,
    name="Partitions are added",
    happens="With more partitions, keys change theirs: a newer version lies at a smaller offset than an older one.",
    made="First versions into two partitions; two more are added; second versions of all keys into four.",
    why="Copies are matched by key and versions by their version column, wherever they lie. New partitions start at 0.",
)
def partitions_added(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(partitions=2, is_upsert=True, has_version=True)
    count = lab.random.randint(40, 120)
    older = [order | {"version": 1} for order in orders(range(count))]
    newer = [order | {"version": 2, "amount": "7.00"} for order in orders(range(count), 1)]
    lab.random.shuffle(newer)
    places = _places(older, 2)
    shop.write("outbox", older)
    shop.send(older)
    shop.load()
    first = Window(
        label="two partitions",
        judged=shop.day(),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
        ),
    )
    admin = lab.cluster.admin()
    admin.create_partitions([NewPartitions(shop.topic, 4)])[shop.topic].result(30)
    lab.cluster.wait(
        "four partitions to be known", lambda: all(len(state) == 4 for state in lab.cluster.known(shop.topic))
    )
    shop.partitions = 4
    shop.write("outbox", newer)
    shop.send(newer)
    shop.load()
    now = _places(newer, 4, places)
    back = sum(now[order["id"]] < places[order["id"]] for order in newer)
    sizes = Counter(order["number"] % 4 for order in newer)
    second = Window(
        label="four partitions",
        judged=shop.day(1),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": count, "data": count},
            matched={LEDGER_HOP: count, STORE_HOP: count},
            incidents=tuple(("partitions_added", at, 0, sizes[at]) for at in (2, 3)),
        ),
    )
    truth = f"Here {count} keys have two versions each, and the store has the second of all of them."
    answer = (Naive(answer=naive.order(shop.bootstrap, shop.topic), expected=f"{back} out of order"),)
    return Outcome(truth=truth, naive=answer, windows=(first, second))


def _places(
    sent: list[Order], partitions: int, before: dict[str, tuple[int, int]] | None = None
) -> dict[str, tuple[int, int]]:
    """Offset and partition of each order, sent in this order behind those that were there before."""
    ends = Counter(partition for _, partition in (before or {}).values())
    places = {}
    for order in sent:
        partition = order["number"] % partitions
        places[order["id"]] = (ends[partition], partition)
        ends[partition] += 1
    return places
