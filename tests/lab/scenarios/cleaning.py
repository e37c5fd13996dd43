"""Have Kafka remove records by compaction, and by expiry while they are wanted (rows 6, 7, 8)."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from makewhole.kafka.log.broker import _PAGE_BYTES, BrokerLog
from makewhole.kafka.offsets import describe_topic, high_watermarks, log_starts
from makewhole.model.window import PartitionRange, WindowState
from tests.lab import naive, raw
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.servers.proxy import Api, Fault, Rule
from tests.lab.shop import LabShop
from tests.world.consumer import read_all
from tests.world.orders import BORN, Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

CERTIFIED = WindowState.CERTIFIED.value
# A segment ends when a record is a second later than its first one, and is cleaned at once.
COMPACTED = {"cleanup_policy": "compact", "segment_ms": 1000, "min_cleanable_dirty_ratio": 0.001}
ROLLER = 10_000  # its order has a key of its own, and is the only one of the last segment, which is never cleaned


def _version(numbers: Iterable[int], version: int, born: datetime = BORN) -> list[Order]:
    """A version of these orders; each version is an hour later than the one before."""
    at = (born + timedelta(hours=version)).isoformat()
    return [order | {"version": version, "amount": f"{version}.25", "at": at} for order in orders(numbers)]


def _wait_until_compacted(lab: Lab, left: int) -> None:
    shop = lab.shop
    lab.cluster.wait(f"{left} records to be left", lambda: len(read_all(shop.bootstrap, shop.topic)) == left)


@scenario(
    row=6,
    name="Compaction",
    happens="The cleaner removes every record whose key has a later one, and leaves holes in the offsets.",
    made="Several versions of the same keys into a topic with `cleanup.policy=compact`, until only the last are left.",
    why=(
        "A hole in a compacted topic is counted as compacted, not as lost. On an upsert hop the latest version of a "
        "key is compared, and that is the one that compaction keeps."
    ),
)
def compaction(lab: Lab) -> Outcome:
    has_version = lab.random.random() < 0.5
    shop = lab.shop.open_shop(topic=COMPACTED, is_upsert=True, has_version=has_version)
    keys, versions = lab.random.randint(10, 60), lab.random.randint(2, 5)
    rounds = [_version(range(keys), version) for version in range(1, versions + 1)]
    rounds.append(_version([ROLLER], versions + 1))
    for made in rounds:
        shop.write("outbox", made)
    shop.send_in_batches(rounds)
    shop.load()
    is_early = lab.random.random() < 0.5
    early = [shop.open()] if is_early else []
    _wait_until_compacted(lab, keys + 1)
    sent = keys * versions + 1
    answer = (
        Naive(
            answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")),
            expected=f"{sent - keys - 1} lost",
        ),
        Naive(answer=naive.records(shop.bootstrap, shop.topic, sent), expected=f"{sent - keys - 1} lost"),
    )
    window = Window(
        judged=shop.close(early[0] if early else shop.open()),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": sent, "data": keys + 1, "compacted": sent - keys - 1},
            matched={LEDGER_HOP: keys + 1, STORE_HOP: keys + 1},
        ),
    )
    truth = f"Here {keys} keys were sent in {versions} versions each, and the store has the last of every one."
    return Outcome(truth=truth, naive=answer, windows=(window,))


@scenario(
    row=7,
    name="An empty batch kept for a live producer",
    happens=(
        "All records of a batch are superseded, but it was the last batch of a producer that brokers still know: its "
        "header stays, with a record count of 0, so that the producer's numbers are remembered."
    ),
    made="An idempotent producer sends twice; another one supersedes its second batch; then the first one goes on.",
    why="The header covers its offsets and its sequence numbers. The first producer's next record continues them.",
)
def empty_batch(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(topic=COMPACTED, is_upsert=True, has_version=True)
    keys, own, more = (lab.random.randint(5, 50) for _ in range(3))
    wanted = (range(1000, 1000 + own), range(keys), range(keys), [ROLLER], range(2000, 2000 + more))
    # Brokers know a producer for a day after its last record's timestamp, not after its last word.
    today = datetime.now(UTC) - timedelta(hours=len(wanted) + 1)
    kept, older, newer, roller, following = (_version(wanted[at], at + 1, today) for at in range(len(wanted)))
    shop.write("outbox", [*kept, *older, *newer, *roller, *following])
    alive = shop.producer(enable_idempotence=True, linger_ms=60_000)
    shop.send_in_batches([kept, older], alive)
    shop.send_in_batches([newer, roller], shop.producer(enable_idempotence=True, linger_ms=60_000))
    _wait_until_compacted(lab, own + keys + 1)
    assert _empty_batches(shop) == 1
    shop.send_in_batches([following], alive)
    shop.load()
    left = own + keys + 1 + more
    answer = (
        Naive(answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=f"{keys} lost"),
        Naive(answer=naive.sequences(shop.bootstrap, shop.topic), expected=f"{keys} lost"),
    )
    window = Window(
        judged=shop.close(shop.open_until(datetime.now(UTC))),
        expected=Judged(
            state=CERTIFIED,
            accounting={"span": left + keys, "data": left, "compacted": keys},
            matched={LEDGER_HOP: left, STORE_HOP: left},
        ),
    )
    truth = f"Here all {keys} records of a batch were superseded; the store has the last version of every key."
    return Outcome(truth=truth, naive=answer, windows=(window,))


def _empty_batches(shop: LabShop) -> int:
    connection = shop.cluster.connection
    ends = high_watermarks(connection, shop.topic)
    whole = PartitionRange(
        topic=shop.topic, topic_id=describe_topic(connection, shop.topic).topic_id, partition=0, lo=0, hi=ends[0]
    )
    empty, offset = 0, 0
    with BrokerLog(connection) as broker:
        while offset < whole.hi:
            batches = broker.fetch(whole, offset, "uncommitted").batches
            empty += sum(batch.record_count == 0 for batch in batches)
            offset = batches[-1].end_offset
    return empty


@scenario(
    row=8,
    name="Records expire before they are read",
    happens="Retention, or DeleteRecords, moves the log's start past records that no snapshot has read yet.",
    made="A window is opened; then its first records are deleted, by DeleteRecords or by retention; then it is read.",
    why=(
        "What cannot be read any more is neither lost nor matched: it is counted as expired, its keys are "
        "undecidable, and the window is partial and never certified."
    ),
    covered_by=("tests/integration/spark/test_silence.py",),
)
def expired_before(lab: Lab) -> Outcome:
    by_retention = lab.random.random() < 0.5
    shop = lab.shop.open_shop(topic={"segment_ms": 1000} if by_retention else None)
    made = orders(range(lab.random.randint(30, 80)))
    gone = lab.random.randint(5, len(made) - 5)
    shop.write("outbox", made)
    shop.send_in_batches([made[:gone], made[gone:]])
    shop.load()
    context = shop.open()
    if by_retention:
        oldest_kept = datetime.fromisoformat(made[gone]["at"]) - timedelta(seconds=30)
        shop.change_topic(retention_ms=int((datetime.now(UTC) - oldest_kept).total_seconds() * 1000))
    else:
        shop.delete_records({0: gone})
    lab.cluster.wait(f"the log to start at {gone}", lambda: log_starts(lab.cluster.connection, shop.topic) == {0: gone})
    expired = {order["id"]: ("undecidable", "expired") for order in made[:gone]}
    left = len(made) - gone
    answer = (
        Naive(answer=naive.offsets(shop.bootstrap, shop.topic, shop.count("warehouse")), expected=f"{gone} repeated"),
        Naive(answer=naive.records(shop.bootstrap, shop.topic, len(made)), expected=f"{gone} lost"),
    )
    window = Window(
        judged=shop.close(context),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": len(made), "data": left, "expired": gone},
            matched={LEDGER_HOP: left, STORE_HOP: left},
            found={LEDGER_HOP: expired, STORE_HOP: expired},
            incidents=(("expired", 0, 0, gone),),
            reason="partial:",
        ),
    )
    way = "retention" if by_retention else "DeleteRecords"
    truth = f"Here {len(made)} orders were sent and loaded, and {gone} of their records went by {way} before the read."
    return Outcome(truth=truth, naive=answer, windows=(window,))


@scenario(
    row=8,
    name="Records expire in the middle of a read",
    happens="The log's start overtakes a reader: a consumer is set back to the new start, and skips what lies between.",
    made="The second page of a snapshot's read is held on its way until records behind the first page are deleted.",
    why="Every offset is accounted for: what should have been read and cannot be is expired. The window is partial.",
)
def expired_meanwhile(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(1000))
    shop.write("outbox", made)
    size = 40
    batches = [made[at : at + size] for at in range(0, len(made), size)]
    read = size * _send_in_large_batches(lab, batches)
    shop.load()
    gone = lab.random.randint(read + 1, len(made) - 1)
    lab.through_proxy()
    context = shop.open()
    hold = lab.cluster.proxy.add(Rule(api=Api.FETCH, fault=Fault.HOLD, first=2))
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(shop.snapshot, context)
        hold.wait_until_hit()
        shop.delete_records({0: gone})
        lab.cluster.proxy.remove(hold)
        reading.result()
    expired = {order["id"]: ("undecidable", "expired") for order in made[read:gone]}
    left = len(made) - len(expired)
    window = Window(
        judged=shop.close(context),
        expected=Judged(
            state=WindowState.NOT_KNOWN.value,
            accounting={"span": len(made), "data": left, "expired": gone - read},
            matched={LEDGER_HOP: left, STORE_HOP: left},
            found={LEDGER_HOP: expired, STORE_HOP: expired},
            incidents=(("expired", 0, read, gone),),
            reason="partial:",
        ),
    )
    truth = f"Here {len(made)} orders were sent and loaded; the reader had {read} when all before {gone} were deleted."
    answer = (Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),)
    return Outcome(truth=truth, naive=answer, windows=(window,))


def _send_in_large_batches(lab: Lab, batches: list[list[Order]]) -> int:
    """Batches of some hundred kilobytes each; how many of them the reader's first page has room for."""
    shop = lab.shop
    port = lab.cluster.port(lab.cluster.leader(shop.topic))
    sizes = []
    for batch in batches:
        records = [
            (record["key"], record["value"])
            for record in (shop.record(order | {"note": lab.random.randbytes(6_000).hex()}) for order in batch)
        ]
        content = raw.batch(records, timestamp_ms=milliseconds(batch[0]["at"]))
        raw.produce(port, shop.topic, 0, content)
        sizes.append(len(content))
    return next(count for count in range(len(sizes)) if sum(sizes[: count + 1]) > _PAGE_BYTES)
