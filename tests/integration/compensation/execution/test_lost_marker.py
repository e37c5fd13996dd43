"""Test a marker that expired, was deleted or changed: the topic says how far the plan got, or nothing is written."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.kafka import replayed_chunks
from makewhole.kafka.replay import MARKER_TOPIC
from makewhole.model.errors import CorruptionError, TransientError
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld
from tests.world.combinations import with_every_change

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 20
CHUNK = 5
FUTURE_MS = 4_102_444_800_000


@pytest.mark.parametrize("chunks", with_every_change([2, 1, 3], first=1))
@pytest.mark.parametrize("is_followed", [True, False], ids=["followed", "not_followed"])
def test_a_deleted_marker_is_made_again_from_the_topic(world: PlanWorld, chunks: int, is_followed: bool) -> None:
    plan = _interrupted(world, chunks)
    if not is_followed:  # as if the runner was killed between the commit and the journal
        world.journal_sql("delete from makewhole.chunk where chunk = %s", chunks - 1)
    _delete_marker(world, plan)
    receipts = world.run(plan)
    _assert_each_once(world)
    assert [(receipt.chunk, receipt.actions) for receipt in receipts] == [(n, CHUNK) for n in range(RECORDS // CHUNK)]
    assert _marker(world, plan) == RECORDS // CHUNK


def test_a_marker_that_was_set_back_does_not_repeat_what_was_written(world: PlanWorld) -> None:
    plan = _interrupted(world, 2)
    _set_marker(world, plan, 0)
    world.run(plan)
    _assert_each_once(world)


def test_a_marker_that_was_set_forward_does_not_leave_anything_out(world: PlanWorld) -> None:
    plan = _interrupted(world, 1)
    _set_marker(world, plan, 3)
    with pytest.raises(CorruptionError, match=r"says that 3 chunks of this plan are done, and flights-.* holds 1"):
        world.run(plan)
    assert len(world.replayed()) == CHUNK


def test_a_chunk_that_was_refused_whole_leaves_no_record_and_is_not_missed(world: PlanWorld) -> None:
    world.send(range(RECORDS))
    for position, record in world.originals.items():
        if int((record.key or b"")[1:]) in range(10, 15):  # K10 to K14 come third in the order of keys
            world.originals[position] = replace(record, timestamp_ms=FUTURE_MS)
    plan = _freeze(world)
    refused = sorted(set(range(RECORDS)) & set(range(10, 15)))
    _interrupt_after(world, plan, 3)
    _delete_marker(world, plan)
    receipts = world.run(plan)
    keys = Counter(message.key_text for message in world.replayed())
    assert keys == {f"K{number}": 1 for number in range(RECORDS) if number not in refused}
    assert sum(receipt.actions for receipt in receipts) == RECORDS - len(refused)


def test_when_the_log_begins_later_now_nothing_is_written(world: PlanWorld) -> None:
    plan = _interrupted(world, 2)
    _delete_marker(world, plan)
    end = max(message.offset for message in world.replayed() if message.partition == 0) + 1
    admin = world.admin
    at = TopicPartition(world.topic, 0, end)
    admin.delete_records([at])[at].result(30)
    before = len(world.replayed())
    for _ in range(2):
        with pytest.raises(
            CorruptionError, match=f"the marker of the plan is lost, and {world.topic} partition 0 begins at {end} now"
        ):
            world.run(plan)
    assert len(world.replayed()) == before


def test_forged_headers_do_not_stand_for_records(world: PlanWorld) -> None:
    plan = _interrupted(world, 1)
    _delete_marker(world, plan)
    forged = _frozen_records(world, plan, chunk=1)
    outsider = Producer({"bootstrap.servers": world.bootstrap})
    for seq, key, value in forged:  # the right content, outside of any transaction
        outsider.produce(world.topic, value, key, headers=_headers(plan, 1, seq))
    outsider.flush()
    with _transaction(world, "liar", commits=True) as liar:  # committed, with other content
        for seq, key, _ in forged:
            liar.produce(world.topic, b"{}", key, headers=_headers(plan, 1, seq))
        liar.produce(world.topic, b"{}", b"K", headers=_headers(plan, 77, 10**8))
        liar.produce(world.topic, b"{}", b"K", headers=[*_headers(plan, 1, 1)[:1], ("makewhole-chunk", b"x")])
    with _transaction(world, "quitter", commits=False) as quitter:  # the right content, aborted
        for seq, key, value in forged:
            quitter.produce(world.topic, value, key, headers=_headers(plan, 1, seq))
    receipts = world.run(plan)
    assert [receipt.chunk for receipt in receipts] == list(range(RECORDS // CHUNK))
    genuine = Counter(
        message.key_text for message in world.replayed() if dict(message.headers).get("makewhole-origin") is not None
    )
    # The outsider's records are in the topic by now, whatever their headers say: their keys have arrived.
    arrived = {key.decode() for _, key, _ in forged}
    assert genuine == {f"K{number}": 1 for number in range(RECORDS) if f"K{number}" not in arrived}
    assert {key for key, (outcome, _) in world.outcomes(plan).items() if outcome == "refused"} == arrived


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_committed_copy_of_the_right_content_is_not_taken_for_the_plans_own(world: PlanWorld, chunk: int) -> None:
    """A stream processor that keeps headers repeats a whole chunk in a transaction of its own: the plan goes on."""
    plan = _interrupted(world, 1)
    _delete_marker(world, plan)
    _repeat(world, plan, chunk, slice(0, CHUNK))
    receipts = world.run(plan)

    assert [receipt.chunk for receipt in receipts] == list(range(RECORDS // CHUNK))
    genuine = Counter(
        message.key_text for message in world.replayed() if dict(message.headers).get("makewhole-origin") is not None
    )
    repeated = {key.decode() for _, key, _ in _frozen_records(world, plan, chunk)}
    # The records of the other writer are looked at again before each chunk: what it sent has arrived.
    assert genuine == {f"K{number}": 1 for number in range(RECORDS) if f"K{number}" not in repeated}
    assert {key for key, (outcome, _) in world.outcomes(plan).items() if outcome == "refused"} == repeated


def test_records_behind_an_open_transaction_are_waited_for(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send(range(RECORDS))
    plan = _freeze(world)
    monkeypatch.setattr(replayed_chunks, "_PATIENCE_SECONDS", 0.5)
    with _transaction(world, "sleeper", commits=True) as sleeper:
        for partition in range(3):
            sleeper.produce(world.topic, b"{}", b"S", partition=partition)
        sleeper.flush()
        _interrupt_after(world, plan, 1)
        _delete_marker(world, plan)
        with pytest.raises(TransientError, match="has an open transaction, and the plan's records may stand behind it"):
            world.run(plan)
    world.run(plan)
    keys = Counter(message.key_text for message in world.replayed() if message.key != b"S")
    assert keys == {f"K{number}": 1 for number in range(RECORDS)}


def test_a_plan_that_is_done_stays_done_when_its_marker_expires(world: PlanWorld) -> None:
    world.send(range(RECORDS))
    plan = _freeze(world)
    receipts = world.run(plan)
    _delete_marker(world, plan)
    admin = world.admin
    at = TopicPartition(world.topic, 0, -1)
    admin.delete_records([at])[at].result(30)
    assert world.run(plan) == receipts


def _interrupted(world: PlanWorld, chunks: int) -> str:
    world.send(range(RECORDS))
    plan = _freeze(world)
    _interrupt_after(world, plan, chunks)
    return plan


def _freeze(world: PlanWorld) -> str:
    return str(world.plan([world.finding(number, Verdict.MISSING) for number in range(RECORDS)]).id)


def _interrupt_after(world: PlanWorld, plan: str, chunks: int) -> None:
    def interrupt(progress: PlanProgress) -> None:
        if progress.chunks_done == chunks:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        run_plan(world.journal, plan, world.targets, interrupt)
    assert world.journal_sql("select count(*) from makewhole.chunk") == [(chunks,)]


def _assert_each_once(world: PlanWorld) -> None:
    keys = Counter(message.key_text for message in world.replayed())
    assert keys == {f"K{number}": 1 for number in range(RECORDS)}


def _group(plan: str) -> str:
    return f"replay-{plan}-flights"


def _delete_marker(world: PlanWorld, plan: str) -> None:
    admin = world.admin
    admin.delete_consumer_groups([_group(plan)])[_group(plan)].result(30)


def _set_marker(world: PlanWorld, plan: str, chunks: int) -> None:
    admin = world.admin
    wanted = ConsumerGroupTopicPartitions(_group(plan), [TopicPartition(MARKER_TOPIC, 0, chunks)])
    admin.alter_consumer_group_offsets([wanted])[_group(plan)].result(30)


def _marker(world: PlanWorld, plan: str) -> int:
    admin = world.admin
    wanted = ConsumerGroupTopicPartitions(_group(plan), [TopicPartition(MARKER_TOPIC, 0)])
    offsets = admin.list_consumer_group_offsets([wanted])[_group(plan)].result(30)
    return int(offsets.topic_partitions[0].offset)


def _frozen_records(world: PlanWorld, plan: str, chunk: int) -> list[tuple[int, bytes, bytes | None]]:
    rows = world.journal_sql(
        "select seq, key from makewhole.action where plan = %s and chunk = %s order by seq", plan, chunk
    )
    values = {record.key: record.value for record in world.originals.values()}
    return [(seq, key.encode(), values[key.encode()]) for seq, key in rows]


def _repeat(world: PlanWorld, plan: str, chunk: int, seqs: slice) -> None:
    with _transaction(world, "liar", commits=True) as liar:
        for seq, key, value in _frozen_records(world, plan, chunk=chunk)[seqs]:
            liar.produce(world.topic, value, key, headers=_headers(plan, chunk, seq))


def _headers(plan: str, chunk: int, seq: int) -> list[tuple[str, str | bytes | None]]:
    return [
        ("makewhole-plan", plan.encode()),
        ("makewhole-seq", str(seq).encode()),
        ("makewhole-chunk", str(chunk).encode()),
    ]


@contextmanager
def _transaction(world: PlanWorld, name: str, *, commits: bool) -> Iterator[Producer]:
    producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": f"{name}-{world.topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    yield producer
    producer.flush()
    if commits:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
