"""Take Kafka's own test programs for a ledger and a hop: what they do is known from their lines (rows 131 to 134)."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from makewhole.compensation.plan_window import plan_window
from makewhole.compute.keys import key_text
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer, compared
from tests.lab.processes.kafka_tools import Acknowledged, KafkaTool, message_copier, verifiable_producer
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import CERTIFIED, GAPS
from tests.lab.shop import LabShop
from tests.world.consumer import Record
from tests.world.orders import BORN
from tests.world.pipeline_file import Settings, ledger, pipeline_file, topic
from tests.world.shop import LEDGER_HOP
from tests.world.topics import commit_group
from tests.world.windows import Found

_COPY_HOP = "orders→copies"
_CREATED_MS = int(BORN.timestamp() * 1000)
_BY_VALUE: Settings = {"value": "string", "key": '"$.value"'}
_A_SECOND = 200


def _open(lab: Lab, *, by_position: bool = False, has_copies: bool = False) -> LabShop:
    """Describe a shop whose ledger has the acknowledged lines of producers, by their values or by their positions."""
    shop, targets = lab.shop, ["orders"]
    shop.sql('create table outbox (value text, partition int, "offset" bigint, at timestamptz)')
    shop.make_topic()
    of_ledger = {"key": "[partition, offset]" if by_position else "value"}
    points = {
        "outbox": ledger("db", "outbox", **of_ledger),
        "orders": topic("log", shop.topic, value="string", key="position" if by_position else '"$.value"'),
    }
    hops: list[Settings] = [{"from": "outbox", "to": "orders", "compensation": "{missing: report}"}]
    if has_copies:
        lab.cluster.create_topic(_target(shop), partitions=1, min_isr=2, settings={})
        lab.ends.callback(lab.cluster.delete_topic, _target(shop))
        points["copies"] = topic("log", _target(shop), **_BY_VALUE)
        hops.append({"from": "orders", "to": "copies", "consumer_group": shop.group})
        targets.append("copies")
    settings = {
        "start": "earliest",
        "settle": "0s",
        "compensation": "{limits: {share: 1.0}, approval: {above_actions: 1000}}",
    }
    shop.file.write_text(pipeline_file("shop", points=points, hops=hops, settings=settings, columns={}))
    return shop


def _target(shop: LabShop) -> str:
    return f"{shop.topic}-copies"


def _write_down(shop: LabShop, acknowledged: Sequence[Acknowledged], at: datetime) -> None:
    """Load the lines of producers into the ledger, as whoever keeps them does."""
    shop.sql(
        "insert into outbox select * from unnest(%s::text[], %s::int[], %s::bigint[], %s::timestamptz[])",
        [item.value for item in acknowledged],
        [item.partition for item in acknowledged],
        [item.offset for item in acknowledged],
        [at] * len(acknowledged),
    )


def _produced(shop: LabShop, number: int, count: int, **settings: object) -> list[Acknowledged]:
    """Have a producer send so many records, to its own end."""
    with verifiable_producer(
        shop.bootstrap, shop.topic, value_prefix=number, max_messages=count, **settings
    ) as producer:
        producer.finish()
        return producer.acknowledged


def _counted(shop: LabShop, acknowledged: int) -> Naive:
    """Compare the lines of the producers with what a consumer reads."""
    there = len(shop.read())
    answer = NaiveAnswer(
        check="lines of the producer, records in the topic",
        text=f"{acknowledged} lines, {there} records",
        conclusion=compared(acknowledged, there),
    )
    return Naive(answer=answer, expected=compared(acknowledged, there))


def _value(record: Record) -> str:
    assert record.value is not None
    return record.value.decode()


@scenario(
    row=131,
    name="Kafka's VerifiableProducer as a ledger, killed three times",
    happens=(
        "The lines that a producer prints for acknowledged records are loaded into a table. It dies again and again: "
        "records that were on their way are in the topic, and no line says so."
    ),
    made=(
        "`org.apache.kafka.tools.VerifiableProducer` with `acks=all`, killed by SIGKILL three times and started again, "
        "each with values of its own. The ledger's key is the value, or the position of the record (by the seed)."
    ),
    why=(
        "What has a line is in the topic, once. What has none was not acknowledged, and may be in the topic all the "
        "same: a ledger that is written after the answer does not know it, and each of these records is named. Where "
        "there is none, the window is certified."
    ),
)
def verifiable_ledger(lab: Lab) -> Outcome:
    by_position = lab.random.random() < 0.5
    shop = _open(lab, by_position=by_position)
    acknowledged = list[Acknowledged]()
    for number in range(1, 4):
        settings = {"value_prefix": number, "throughput": _A_SECOND, "message_create_time": _CREATED_MS}
        with verifiable_producer(shop.bootstrap, shop.topic, **settings) as producer:
            producer.until("producer_send_success", lab.random.randint(20, 150))
            producer.kill()
            acknowledged += producer.acknowledged
    acknowledged += _produced(shop, 4, lab.random.randint(20, 80), message_create_time=_CREATED_MS)
    _write_down(shop, acknowledged, BORN)
    records, lines = shop.read(), {item.value for item in acknowledged}
    unknown = [record for record in records if _value(record) not in lines]
    keys = [_position(record) if by_position else _value(record) for record in unknown]
    verdicts: dict[str, Found] = {LEDGER_HOP: dict.fromkeys(keys, ("unexpected", "not_in_source"))} if keys else {}
    expected = Judged(
        state=GAPS if keys else CERTIFIED,
        reason="" if keys else None,
        accounting={"span": len(records), "data": len(records)},
        matched={LEDGER_HOP: len(acknowledged)},
        found=verdicts,
    )
    return Outcome(
        truth=f"Here {len(acknowledged)} records were acknowledged, and {len(keys)} more are in the topic.",
        naive=(_counted(shop, len(acknowledged)),),
        windows=(Window(judged=shop.day(), expected=expected),),
    )


def _position(record: Record) -> str:
    return key_text([str(record.partition), str(record.offset)])


@scenario(
    row=132,
    name="Kafka's VerifiableProducer with acks=0, and the broker dies",
    happens=(
        "A producer that asks for no answer reports each record as sent when it is written into the socket. The leader "
        "hangs and dies, and its lines go on until the client notices."
    ),
    made=(
        "`VerifiableProducer --acks 0`, SIGSTOP of the leader while it sends, and SIGKILL after a hundred more lines; "
        "another one sends to the new leader. The ledger has all lines, which have no offset."
    ),
    why=(
        "Rows of the ledger that no record has are missing, and the leader changed meanwhile. A `value: string` cannot "
        "be produced from rows, so that they are reported by name."
    ),
)
def verifiable_without_acks(lab: Lab) -> Outcome:
    shop, cluster = _open(lab), lab.cluster
    state = cluster.wait_for_leader(shop.topic)
    settings = {"value_prefix": 1, "throughput": _A_SECOND, "message_create_time": _CREATED_MS, "acks": 0}
    with verifiable_producer(shop.bootstrap, shop.topic, **settings) as producer:
        producer.until("producer_send_success", lab.random.randint(50, 150))
        cluster.wait("a record that followers have", lambda: shop.read())  # else no log tells that the leader changed
        cluster.pause(state.leader)
        producer.until("producer_send_success", 100, since_ms=1000 * time.time())
        producer.kill()
        acknowledged = producer.acknowledged
    cluster.kill(state.leader)
    cluster.wait_for_leader(shop.topic, after_epoch=state.leader_epoch)
    acknowledged += _produced(shop, 2, lab.random.randint(20, 80), message_create_time=_CREATED_MS)
    cluster.heal()
    _write_down(shop, acknowledged, BORN)
    there = {_value(record) for record in shop.read()}
    before = sum(value.startswith("1.") for value in there)  # the new leader's records begin behind these
    lost = [item.value for item in acknowledged if item.value not in there]
    unknown = there - {item.value for item in acknowledged}
    wrong = dict.fromkeys(lost, ("missing", "leader_changed"))
    wrong |= dict.fromkeys(unknown, ("unexpected", "not_in_source"))
    assert lost
    expected = Judged(
        state=GAPS,
        reason="",
        accounting={"span": len(there), "data": len(there)},
        matched={LEDGER_HOP: len(acknowledged) - len(lost)},
        found={LEDGER_HOP: wrong},
        incidents=(("leader_changed", 0, before, len(there)),),
    )
    return Outcome(
        truth=f"Here {len(acknowledged)} records were reported as sent, and {len(lost)} of them are not there.",
        naive=(_counted(shop, len(acknowledged)),),
        windows=(Window(judged=shop.day(), expected=expected),),
    )


def _copy(shop: LabShop, **settings: object) -> KafkaTool:
    """Copy to the end of what is there."""
    with message_copier(shop.bootstrap, shop.topic, _target(shop), shop.group, **settings) as copier:
        copier.finish()
        return copier


def _copy_until(shop: LabShop, copies: int) -> None:
    """Copy until so many copies are there: behind a transaction it waits for ever for the marker to be a record."""
    with message_copier(shop.bootstrap, shop.topic, _target(shop), shop.group, transaction_size=1):
        shop.cluster.wait(f"{copies} copies", lambda: len(shop.read(_target(shop))) >= copies)


def _expected(shop: LabShop, made: int, verdicts: Found | None = None, **more: object) -> Judged:
    """Return a window of which these findings are at the copies, and everything else is right."""
    expected = Judged(
        state=CERTIFIED,
        accounting={"span": made, "data": made},
        matched={LEDGER_HOP: made, _COPY_HOP: made - len(verdicts or {})},
        found={_COPY_HOP: verdicts} if verdicts else {},
    )
    return replace(expected, **more)  # type: ignore[arg-type]


def _copies(shop: LabShop) -> Naive:
    source, target = (len(shop.read(name)) for name in (shop.topic, _target(shop)))
    answer = NaiveAnswer(
        check="records of read_committed consumers of both topics",
        text=f"{source} records, {target} copies",
        conclusion=compared(source, target),
    )
    return Naive(answer=answer, expected=compared(source, target))


@scenario(
    row=133,
    name="Kafka's TransactionalMessageCopier, killed five times",
    happens=(
        "The copier by which Kafka tests its own transactions dies again and again, in the middle of transactions, and "
        "some of those that it ends it aborts on purpose."
    ),
    made=(
        "`org.apache.kafka.tools.TransactionalMessageCopier --use-group-metadata --enable-random-aborts`, killed by "
        "SIGKILL five times after some of its lines; what `VerifiableProducer` was acknowledged is the ledger."
    ),
    why="The offsets are in its transactions: each record is there once, in both topics, and aborted copies are none.",
)
def killed_message_copier(lab: Lab) -> Outcome:
    shop = _open(lab, has_copies=True)
    made = _produced(shop, 1, lab.random.randint(300, 500))
    _write_down(shop, made, datetime.now(UTC))
    settings = {"transaction_size": lab.random.randint(10, 20), "enable_random_aborts": True}
    for _ in range(5):
        with message_copier(shop.bootstrap, shop.topic, _target(shop), shop.group, **settings) as copier:
            copier.until("remaining", lab.random.randint(1, 4))
            copier.kill()
    _copy(shop, **settings)
    judged = shop.close(shop.open_until(datetime.now(UTC)))
    return Outcome(
        truth=f"Here {len(made)} records were acknowledged, and all of them copied.",
        naive=(_copies(shop),),
        windows=(Window(judged=judged, expected=_expected(shop, len(made))),),
    )


@scenario(
    row=134,
    name="Kafka's TransactionalMessageCopier, whose group is set forward and back",
    happens=(
        "A person sets the offsets of a copier's group, while it stands: forward, past records that are never copied "
        "then, and another time back, before records that were copied already."
    ),
    made=(
        "`TransactionalMessageCopier` three times to the end of what is there, its group set forward before the second "
        "time and back before the third one. `missing: redeliver`."
    ),
    why=(
        "Records that the group has passed and that have no copy are lost: they are sent again, copied, and proven. "
        "The copier commits in its transactions, so that a second copy is not one that was written before its commit: "
        "another session sent it again. It stays in the topic, and is reported by name."
    ),
)
def set_message_copier(lab: Lab) -> Outcome:
    shop = _open(lab, has_copies=True)
    made, sizes = list[Acknowledged](), [lab.random.randint(60, 120) for _ in range(3)]
    skipped, again = lab.random.randint(5, 30), lab.random.randint(5, 30)
    for number, (size, moved) in enumerate(zip(sizes, (0, skipped, -again), strict=True)):
        end = len(made)
        made += _produced(shop, number, size)
        if moved:
            commit_group(shop.bootstrap, shop.group, shop.topic, end + moved)
        _copy(shop, transaction_size=10)
    _write_down(shop, made, datetime.now(UTC))
    values = [item.value for item in made]
    first, second = sizes[0], sizes[0] + sizes[1]
    lost, doubled = values[first : first + skipped], values[second - again : second]
    verdicts = dict.fromkeys(lost, ("missing", "committed_before_written"))
    verdicts |= dict.fromkeys(doubled, ("duplicate", "application_resend"))
    answers = (_copies(shop), Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL))
    context = shop.open_until(datetime.now(UTC))
    shop.judge(context)
    shop.validate(context)
    plan_window(context)
    shop.repair(context)
    _copy_until(shop, len(made) + again)
    outcomes = (f"{_COPY_HOP}: {again} open, {skipped} repaired",)
    return Outcome(
        truth=f"Here {len(made)} records were acknowledged, {skipped} of them never copied, and {again} copied twice.",
        naive=answers,
        windows=(
            Window(
                judged=shop.verified_with_outcomes(context),
                expected=_expected(shop, len(made), verdicts, state=GAPS, reason="", messages=outcomes),
            ),
        ),
    )
