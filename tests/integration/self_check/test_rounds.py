"""Test that a self-check finds what it plants, says what is missed, and plants each round once."""

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

from makewhole.compute.judge import judge_copies
from makewhole.journal.database import connect
from makewhole.journal.results import self_check_rounds
from makewhole.kafka import scratch_topic
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.people.notices import Waits
from makewhole.model.self_check.planted import Discrepancy, rows_of
from makewhole.model.self_check.settings import TOPIC_HOP
from makewhole.model.window import WindowState
from makewhole.orchestration.notices.waiting_items import waiting_items
from makewhole.postgres.scratch_tables import ScratchTables
from makewhole.self_check import plant as planting
from makewhole_spark.reconcile.judge import judge_bucket
from tests.integration.self_check.checked_world import CheckedWorld
from tests.world.topics import delete_topics, make_topic

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_what_is_planted_is_found_and_repaired_also_twice_on_a_day(world: CheckedWorld) -> None:
    for number in (1, 2):
        compared = world.round(f"run {number}")
        assert compared.result is not None
        score = compared.result.score
        assert (score.missed, score.invented, score.left, score.reason) == ((), (), (), None)
        assert score.found == score.planted == len(compared.planted) >= 5
        assert (score.recall, score.precision, score.state) == (1.0, 1.0, WindowState.CERTIFIED)
        assert score.is_green
        assert (compared.round, compared.result.window, compared.result.revision) == (number, number, 1)
    assert world.journal_sql("select count(*) from makewhole.certificate") == [(2,)]
    with pytest.raises(RefusedError, match=r"^round 2 of run run 2 was compared already; start a new run"):
        world.plant("run 2")


def test_a_judge_that_loses_a_key_makes_the_check_red(world: CheckedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judge_copies.judge
    planted = world.plant("run 1")
    lost = next(fault for fault in planted.planted if fault.verdict == "mismatched")

    def losing(known: Any) -> pl.DataFrame:
        judged = judge(known)
        is_mismatched = pl.col("verdict").cast(pl.String) == "mismatched"
        return judged.with_columns(
            verdict=pl.when(is_mismatched & (is_mismatched.cum_sum() == 1))
            .then(pl.lit("matched").cast(judged.schema["verdict"]))
            .otherwise(pl.col("verdict"))
        )

    monkeypatch.setattr(judge_bucket, "judge", losing)
    world.take(planted)

    [compared] = world.compare()
    assert compared.result is not None
    score = compared.result.score
    assert len(score.missed) >= 1
    assert {fault.verdict for fault in score.missed} == {lost.verdict}
    assert score.left == score.missed  # it was not repaired either
    assert (score.recall < 1.0, score.precision, score.is_green) == (True, 1.0, False)
    assert score.state is WindowState.CERTIFIED  # what the window says of itself shows nothing
    assert f"{len(score.missed)} missed: " in score.sentence()
    with connect(world.journal) as journal:
        [item] = waiting_items(journal, lambda *_: None)
    assert (item.kind, item.window, item.command) == (Waits.SELF_CHECK, 1, "makewhole self-check self_check")
    assert item.headline == f"self_check window 1 has round 1 of its self-check red: {score.sentence()}"

    monkeypatch.setattr(judge_bucket, "judge", judge)  # a green round ends it
    assert world.round("run 2").result is not None
    with connect(world.journal) as journal:
        assert waiting_items(journal, lambda *_: None) == []


def test_records_that_a_repair_should_not_have_written_are_still_wrong(world: CheckedWorld) -> None:
    """A key without its record may get one, or two with that for its store; every other key has its own alone."""
    planted = world.plant("run 1")
    world.take(planted)
    clean = [row for row in rows_of(planted.name, planted.records) if row.key not in {f.key for f in planted.planted}]
    again, other = clean[:2]
    records = [(again.key, again.amount), (other.key, other.amount + 1), (f"{planted.name}-unknown", other.amount)]
    produce(world, records)

    [compared] = world.compare()
    assert compared.result is not None
    assert compared.result.score.left == (
        Discrepancy(hop=TOPIC_HOP, verdict="duplicate", key=again.key),
        Discrepancy(hop=TOPIC_HOP, verdict="mismatched", key=other.key),
        Discrepancy(hop=TOPIC_HOP, verdict="unexpected", key=f"{planted.name}-unknown"),
    )
    assert not compared.result.score.is_green


def produce(world: CheckedWorld, records: list[tuple[str, Decimal]]) -> None:
    producer = Producer({"bootstrap.servers": world.systems.kafka.bootstrap})
    for key, amount in records:
        producer.produce(world.topic, json.dumps({"id": key, "amount": str(amount)}).encode(), key.encode())
    assert producer.flush(30) == 0


class Killed(BaseException):
    """The end of a process."""


_ACTS: list[tuple[Any, str]] = [
    (ScratchTables, "make"),
    (scratch_topic, "make_topic"),
    (self_check_rounds, "begin"),
    (ScratchTables, "send"),
    (scratch_topic, "send_once"),
    (ScratchTables, "load"),
    (planting, "load"),
    (ScratchTables, "spoil"),
    (self_check_rounds, "note_planted"),
]


@pytest.mark.extended
def test_a_planting_that_is_killed_behind_any_of_its_acts_is_gone_on_with_and_each_fault_is_there_once(
    world: CheckedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (owner, act) in enumerate(_ACTS):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(owner, act, _dying_behind(getattr(owner, act)))
            world.plant(f"run {number}")
    planted = world.plant("run at last")

    assert world.journal_sql("select round, run from makewhole.self_check_round") == [(1, "run 3")]
    keys = [row.key for row in rows_of(planted.name, planted.records)]
    by_kind = Counter((fault.hop, fault.verdict) for fault in planted.planted)
    sent = Counter(record.key for record in world.records(world.topic))
    assert set(sent.values()) == {1}
    assert len(sent) == len(keys) - by_kind["sent→events", "missing"]
    [(rows,)] = world.sql("select count(*) from makewhole_self_check.stored")
    more = by_kind["events→stored", "duplicate"] + by_kind["events→stored", "unexpected"]
    assert rows == len(sent) - by_kind["events→stored", "missing"] + more

    # The run was killed once more, between planting and window; the next one takes its window.
    again = world.plant("run behind it")
    assert (again.round, again.run) == (1, "run 3")
    closed = world.take(again)
    assert closed.state is WindowState.CERTIFIED
    # And once more behind the window: the next run plants a round of its own, and compares both.
    following = world.plant("run tomorrow")
    assert (following.round, following.run) == (2, "run tomorrow")
    [compared] = world.compare()
    assert (compared.round, compared.result is not None and compared.result.score.is_green) == (1, True)


def _dying_behind(act: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*given: Any, **named: Any) -> Any:
        act(*given, **named)
        raise Killed

    return dying


def test_a_schema_of_others_is_refused_and_left_as_it_is(world: CheckedWorld) -> None:
    world.sql("create schema makewhole_self_check")
    world.sql("create table makewhole_self_check.stored (theirs int)")

    with pytest.raises(RefusedError) as refused:
        world.plant("run 1")

    assert str(refused.value) == (
        "schema makewhole_self_check of connection db is there already and is not of this self-check; name another "
        "`schema`"
    )
    assert world.sql("select count(*) from pg_class where relnamespace = 'makewhole_self_check'::regnamespace") == [
        (1,)
    ]
    assert world.topic not in world.admin.list_topics(timeout=10).topics


def test_an_empty_schema_of_ones_own_is_taken(world: CheckedWorld) -> None:
    world.sql("create schema makewhole_self_check")
    assert world.plant("run 1").planted_at is not None


def test_a_topic_of_others_is_refused_and_left_as_it_is(world: CheckedWorld) -> None:
    make_topic(world.admin, world.topic)

    with pytest.raises(RefusedError, match=f"^topic {world.topic} of connection log is there already and is not of"):
        world.plant("run 1")

    assert world.records(world.topic) == []
    assert world.journal_sql("select count(*) from makewhole.self_check_round") == [(0,)]


def test_a_topic_that_is_gone_or_made_again_is_named_and_not_made_by_itself(world: CheckedWorld) -> None:
    world.plant("run 1")
    delete_topics(world.admin, [world.topic])
    with pytest.raises(RefusedError, match=f"^topic {world.topic} of connection log is gone; begin again with"):
        world.plant("run 2")

    make_topic(world.admin, world.topic)
    with pytest.raises(RefusedError, match="was made again by others; begin again with"):
        world.plant("run 3")


def test_a_schema_that_is_gone_is_named_and_not_made_by_itself(world: CheckedWorld) -> None:
    world.plant("run 1")
    world.sql("drop schema makewhole_self_check cascade")
    with pytest.raises(RefusedError, match=r"^schema makewhole_self_check of connection db is gone, or another one"):
        world.plant("run 2")


def test_brokers_that_do_not_answer_are_tried_again(world: CheckedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_topic, "_SECONDS", 1.0)
    monkeypatch.setenv("AIRFLOW_CONN_LOG", '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}')
    with pytest.raises(TransientError, match=r"^Kafka log: topic .* try again$"):
        world.plant("run 1")


def test_rows_that_were_kept_long_enough_go(world: CheckedWorld) -> None:
    planted = world.plant("run 1")
    for table in ("sent", "stored"):
        world.sql(f"update makewhole_self_check.{table} set sent_at = now() - interval '13 days 23 hours'")
    world.sql("update makewhole_self_check.stored set sent_at = now() - interval '15 days' where id like %s", "%-x%")
    assert world.plant("run 2").round == planted.round
    assert world.sql("select count(*) from makewhole_self_check.sent") == [(planted.records,)]
    assert world.sql("select count(*) from makewhole_self_check.stored where id like %s", "%-x%") == [(0,)]
