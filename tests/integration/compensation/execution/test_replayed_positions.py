"""Test that the journal has where each record of a plan stands, whatever happened to its runner."""

from contextlib import suppress

import pytest

from makewhole.compensation.execution.pace import PlanProgress
from makewhole.compensation.execution.run_plan import run_plan
from makewhole.kafka.replay import ReplayWriter
from makewhole.model.errors import TransientError
from makewhole.model.positions import RecordPositions
from makewhole.model.verdict import Verdict
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 20


def test_the_journal_has_where_each_record_was_written(world: PlanWorld) -> None:
    plan = _frozen(world)
    world.run(plan)
    assert _journaled(world, plan) == _written(world)
    assert len(_written(world)) == RECORDS


def test_a_runner_that_died_between_the_commit_and_the_journal_has_left_the_positions(world: PlanWorld) -> None:
    plan = _frozen(world)

    def die(progress: PlanProgress) -> None:
        if progress.chunks_done == 2:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        run_plan(world.journal, plan, world.targets, die)
    world.journal_sql("delete from makewhole.chunk where chunk = 1")  # as if it was not followed
    world.run(plan)

    assert _journaled(world, plan) == _written(world)
    assert len(_written(world)) == RECORDS


def test_positions_of_a_transaction_that_was_not_committed_are_replaced(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _frozen(world)
    really_write = ReplayWriter.write
    failed: list[RecordPositions] = []

    def write_and_break(writer, chunk, records, handed_over, delivered):  # type: ignore[no-untyped-def]
        def noted(positions: RecordPositions) -> None:
            delivered(positions)
            if chunk == 1 and not failed:
                failed.append(positions)
                raise TransientError("the brokers are away, behind the journal and before the commit")

        really_write(writer, chunk, records, handed_over, noted)

    monkeypatch.setattr(ReplayWriter, "write", write_and_break)
    world.run(plan)

    assert failed
    assert _journaled(world, plan) == _written(world)
    assert len(_written(world)) == RECORDS


def _frozen(world: PlanWorld) -> str:
    world.send(range(RECORDS))
    return str(world.plan([world.finding(number, Verdict.MISSING) for number in range(RECORDS)]).id)


def _written(world: PlanWorld) -> set[tuple[int, int, int]]:
    """Return (action, partition, offset) of each committed record, by its headers."""
    return {
        (int(dict(record.headers)["makewhole-seq"] or b""), record.partition, record.offset)
        for record in world.replayed()
    }


def _journaled(world: PlanWorld, plan: str) -> set[tuple[int, int, int]]:
    rows = world.journal_sql(
        "select unnest(seqs), partition, unnest(offsets) from makewhole.replayed_position where plan = %s", plan
    )
    return {(row[0], row[1], row[2]) for row in rows}
