"""Hold each question about the windows before one to reading all of them."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.compute.judge.log_history import Truncation
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.history.judged import JudgedWindows, TruncatedLog
from makewhole.journal.results import hop_results, snapshot_manifests
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.verdict import HopCounts
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection

pytestmark = pytest.mark.integration

BORN = datetime(2013, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOWS = 25


def write_history(session: PgConnection, draw: random.Random) -> None:
    """Write windows of one to three hours over two topics: one is truncated and made again, the other joins late; some
    windows are judged again, one is not judged yet, and the last revision of some was not judged."""
    joined, remade = draw.randrange(2, 8), draw.randrange(8, WINDOWS)
    ends = {"a": [0, 0], "b": [0, 0]}
    lineages, end = [0, 0], BORN
    for number in range(1, WINDOWS + 1):
        if number == remade:
            ends["a"], lineages = [0, 0], [0, 0]
        elif draw.random() < 0.15:
            at = draw.randrange(2)
            ends["a"][at], lineages[at] = draw.randrange(ends["a"][at] + 1), lineages[at] + 1
        start, end = end, end + draw.randrange(1, 4) * HOUR
        window = Window(
            pipeline="demo",
            number=number,
            revision=1,
            start=None if number == 1 else start,
            end=end,
            opened_at=end,
            ranges={
                "a": ranges("a", f"a{number >= remade:d}", ends["a"], lineages, draw),
                **({} if number < joined else {"b": ranges("b", "b", ends["b"], [0, 0], draw)}),
            },
        )
        for revision in range(1, draw.choice([2, 2, 2, 4])):
            write(session, window, revision, is_judged=revision == 1 and number < WINDOWS)


def ranges(
    topic: str, topic_id: str, ends: list[int], lineages: Sequence[int], draw: random.Random
) -> tuple[PartitionRange, ...]:
    parts = []
    for partition in (0, 1):
        lo = ends[partition]
        ends[partition] = lo + draw.choice([0, 1, 5, 9])
        parts.append(
            PartitionRange(
                topic=topic,
                topic_id=topic_id,
                partition=partition,
                lo=lo,
                hi=ends[partition],
                lineage=lineages[partition],
            )
        )
    return tuple(parts)


def write(session: PgConnection, window: Window, revision: int, *, is_judged: bool) -> None:
    made = Window(**{**vars(window), "revision": revision})
    windows.insert(session, made, request=f"{made.number}.{revision}", plan_only=False, configuration={})
    if is_judged:
        snapshot_manifests.commit_snapshot(session, made, "a", {"files": {}, "accounting": {"expired": 0}})
        results = [HopResult(hop="a→c", counts=HopCounts(), digest="0")]
        hop_results.commit_results(session, made, hop_results.RECONCILED, results)


@pytest.mark.parametrize("seed", range(12))
def test_each_question_has_the_answer_that_all_windows_give(journal: str, seed: int) -> None:
    draw = random.Random(seed)
    with connect(journal) as session:
        write_history(session, draw)
        every = windows.newest_judged(session, "demo")[::-1]
        asked = JudgedWindows(journal=session, pipeline="demo")
        assert len(every) == WINDOWS - 1
        assert (asked.first(), asked.newest()) == (every[0], every[-1])
        assert asked.newest_few(3) == every[:-4:-1]
        assert asked.of_numbers({3, 99, 7, WINDOWS}) == [every[2], every[6]]
        for point in ("a", "b"):
            assert asked.first_reading(point) == next(window for window in every if point in window.ranges)
        assert asked.first_reading("absent") is None
        for number in draw.sample(range(1, WINDOWS + 1), 6):
            before = [window for window in every if window.number < number]
            assert asked.before(number) == (before[-1] if before else None)
            assert asked.after(number) == [window for window in every if window.number > number]
            moment = BORN + draw.randrange(60) * HOUR
            assert asked.ending_after(moment, number) == [window for window in before if window.end > moment]
            assert asked.ending_after(None, number) == before
            assert asked.since(5, before=number) == [window for window in before if window.number >= 5]
            require_spans(asked, before, number, draw)
            require_positions(asked, before, number, draw)
            require_truncated(asked, before, number, draw)


def require_spans(asked: JudgedWindows, before: list[Window], number: int, draw: random.Random) -> None:
    spans = []
    for _ in range(draw.randrange(3)):
        start = BORN + draw.randrange(50) * HOUR
        spans.append((draw.choice([start, start, None]), start + draw.randrange(1, 9) * HOUR))
    assert asked.in_spans(spans, number) == [
        window
        for window in before
        if any(
            (start is None or window.end > start) and (window.start is None or window.start < end)
            for start, end in spans
        )
    ]


def require_positions(asked: JudgedWindows, before: list[Window], number: int, draw: random.Random) -> None:
    positions = {(draw.randrange(3), draw.randrange(80)) for _ in range(draw.randrange(4))}
    assert asked.holding("a", positions, number) == [
        window
        for window in reversed(before)
        if any(
            part.partition == at and part.lo <= offset < part.hi
            for part in window.ranges["a"]
            for at, offset in positions
        )
    ]


def require_truncated(asked: JudgedWindows, before: list[Window], number: int, draw: random.Random) -> None:
    """Ranges without any offset lose nothing, though they end behind a truncation."""
    truncations = [
        Truncation(topic_id=draw.choice(["a0", "a1"]), partition=at, lineage=draw.randrange(3), lo=draw.randrange(40))
        for at in draw.sample((0, 1), draw.randrange(3))
    ]
    logs = [TruncatedLog(**vars(truncation)) for truncation in truncations]
    assert asked.reached_by("a", logs, number) == [
        window
        for window in before
        if any(part.span and each.reaches(part) for part in window.ranges["a"] for each in truncations)
    ]


def test_the_ids_of_topics_come_in_the_order_of_their_age(journal: str) -> None:
    with connect(journal) as session:
        write_history(session, random.Random(3))
        every = windows.newest_judged(session, "demo")[::-1]
        first = {
            (point, part.topic_id): window.number
            for window in reversed(every)
            for point, parts in window.ranges.items()
            for part in parts
        }
        ids = JudgedWindows(journal=session, pipeline="demo").topic_ids(["a", "b"])
    assert {(point, topic_id): number for point, topic_id, number in ids} == first
    assert [number for *_, number in ids] == sorted(first.values())


def test_a_pipeline_without_a_window_has_no_history(journal: str) -> None:
    with connect(journal) as session:
        asked = JudgedWindows(journal=session, pipeline="demo")
        assert (asked.first(), asked.newest(), asked.before(5), asked.first_reading("a")) == (None,) * 4
        assert asked.after(0) == asked.newest_few(5) == asked.ending_after(None, 9) == asked.of_numbers(()) == []
        assert asked.number_ending_after(BORN) is None and asked.start_of(1) is None
        assert asked.fullest_manifests(()) == {} and asked.topic_ids(["a"]) == []
