"""Test that a verification judges what is to be repaired, by what the systems hold at the end of the patience."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.execution.look_again import topic_tail
from makewhole.compensation.verification import committed_since
from makewhole.compensation.verification.committed_since import StartOffsets
from makewhole.compensation.verification.judge_gaps import GapContext, judge_gaps_again
from makewhole.compensation.verification.judge_key import KeyJudge
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.kafka.log.page import LogSource
from makewhole.kafka.log.reader import RangeReader, read_range
from makewhole.model.hops import Remedy
from makewhole.model.points import Erased
from makewhole.model.verdict import Finding, Verdict
from makewhole.model.window import PartitionRange
from tests.integration.compensation.world import PARTITIONS, PlanWorld
from tests.world.topics import producer

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
HOP = "flights→warehouse"


def with_values(finding: Finding, number: int) -> JudgedFinding:
    values = {"delay": str(number)}
    return JudgedFinding(finding=replace(finding, evidence={**finding.evidence, "values": values}))


def judged(
    world: PlanWorld,
    batches: Iterable[Sequence[JudgedFinding]],
    *,
    seconds: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[str, str, str, str | None]]:
    """Return (key, verdict, outcome, reason) of each finding after it was judged again."""
    known, since = GapContext(open_judge=KeyJudge), StartOffsets(offsets={})
    with judge_gaps_again(world.context, batches, since, seconds, progress, known) as outcomes:
        return sorted(
            (item.finding.key, item.finding.verdict.value, item.outcome, item.reason)
            for batch in outcomes
            for item in batch
        )


@pytest.mark.parametrize("remedy", [Remedy.REPORT, Remedy.REDELIVER])
def test_a_vanished_key_that_is_only_reported_stays_as_it_was_judged(world: PlanWorld, remedy: Remedy) -> None:
    """Else the counts of the result would say `erased` where the stored finding says `vanished`."""
    world.remedies(HOP, vanished=remedy)
    world.sql("create table dw.forgotten (id text); insert into dw.forgotten values ('K0'), ('K1')")
    world.change_points(replace(world.table_point(), erased=Erased(table="dw.forgotten", key=("id",))))
    world.send(range(2))
    findings = [world.finding(0, Verdict.VANISHED), world.finding(1, Verdict.MISSING)]
    world.open_revision(findings)

    outcomes = judged(world, [[with_values(finding, number) for number, finding in enumerate(findings)]])

    erased = "warehouse: dw.forgotten names this key"
    assert outcomes == [
        ("K0", "vanished", "open", None) if remedy is Remedy.REPORT else ("K0", "vanished", "erased", erased),
        ("K1", "missing", "erased", erased),
    ]


def test_what_is_committed_was_read_after_the_patience_had_ended(world: PlanWorld) -> None:
    """A pass may take longer than what is left of the patience: what its first batch read may be old at its end."""
    world.send(range(2))
    findings = [world.finding(number, Verdict.MISSING) for number in range(2)]
    world.open_revision(findings)
    passes: list[tuple[int, int]] = []

    class Batches:
        """A key arrives after its batch was read, and the last batch ends after the deadline."""

        reads = 0

        def __iter__(self) -> Iterator[Sequence[JudgedFinding]]:
            self.reads += 1
            yield [with_values(findings[0], 0)]
            if self.reads == 2:  # the first reads what is wanted of topics
                world.sql("insert into dw.departures (id, delay) values ('K0', 0)")
                time.sleep(1.5)
            yield [with_values(findings[1], 1)]

    outcomes = judged(world, Batches(), seconds=1.0, progress=lambda *counts: passes.append(counts))

    assert outcomes == [
        ("K0", "missing", "repaired", None),
        ("K1", "missing", "open", "warehouse does not hold it"),
    ]
    assert passes == [(0, 2), (1, 2)]


def test_what_was_written_to_a_topic_is_read_once_for_all_batches_and_passes(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail of a topic may be long, and there may be many batches and passes."""
    read: list[str] = []
    monkeypatch.setattr(committed_since, "read_range", _counted(read_range, read))
    world.send(range(4))
    findings = [replace(world.finding(number, Verdict.MISSING), hop="outbox→flights") for number in (0, 1, 2, 9)]
    world.open_revision(findings)
    for number in (0, 1, 9):
        world.sql("insert into dw.departures (id, delay) values (%s, %s)", f"K{number}", number)
    passes: list[tuple[int, int]] = []

    outcomes = judged(
        world,
        [[with_values(finding, int(finding.key[1:]))] for finding in findings],
        seconds=6.0,
        progress=lambda *counts: passes.append(counts),
    )

    assert outcomes == [
        ("K0", "missing", "repaired", None),
        ("K1", "missing", "repaired", None),
        ("K2", "missing", "open", "warehouse does not hold it"),
        ("K9", "missing", "open", "no committed record of it came to flights"),
    ]
    assert len(passes) > 1 and set(passes) == {(2, 4)}
    assert sorted(read) == [f"{world.topic}/{partition}" for partition in range(3)]


def test_tombstones_are_read_once_for_all_batches(world: PlanWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(topic_tail, "read_range", _counted(read_range, read))
    world.change_points(
        replace(world.topic_point(), key=("kafka.key",)),
        replace(world.table_point(), erased=Erased(topics=("flights",))),
    )
    world.send(range(6))
    client = producer(world.bootstrap)
    for number in (0, 1, 3):
        client.produce(world.topic, key=f"K{number}", value=None, partition=number % PARTITIONS)
    assert client.flush(30) == 0
    findings = [world.finding(number, Verdict.MISSING) for number in (0, 1, 2, 3)]
    world.open_revision(findings)

    outcomes = judged(world, [[with_values(finding, int(finding.key[1:]))] for finding in findings])

    assert [(key, outcome) for key, _, outcome, _ in outcomes] == [
        ("K0", "erased"),
        ("K1", "erased"),
        ("K2", "open"),
        ("K3", "erased"),
    ]
    assert sorted(read) == [f"{world.topic}/{partition}" for partition in range(PARTITIONS)]


def _counted(call: Callable[..., RangeReader], read: list[str]) -> Callable[..., RangeReader]:
    def counted(source: LogSource, part: PartitionRange, **options: Any) -> RangeReader:
        read.append(f"{part.topic}/{part.partition}")
        return call(source, part, **options)

    return counted
