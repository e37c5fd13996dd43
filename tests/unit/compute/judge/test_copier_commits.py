"""Test which offsets the commits of a copier's group cover, and which of them reach a window."""

import pytest

from makewhole.compute.judge.copier_commits import CopierCommits, OffsetCommit

pytestmark = pytest.mark.unit


def commits(*ranges: tuple[int | None, int, int | None]) -> CopierCommits:
    """Of partition 0: from, to, and the producer of the transaction."""
    made = (
        OffsetCommit(partition=0, lo=lo, hi=hi, producer_id=producer, producer_epoch=None if producer is None else 0)
        for lo, hi, producer in ranges
    )
    return CopierCommits(group="g", commits=tuple(made))


def test_an_offset_is_covered_from_the_commit_before_up_to_its_own() -> None:
    known = commits((0, 10, None), (10, 20, 7))

    assert [[commit.hi for commit in known.covering(0, at)] for at in (0, 9, 10, 19, 20)] == [
        [10], [10], [20], [20], [],
    ]  # fmt: skip
    assert known.covering(1, 5) == []


@pytest.mark.parametrize(
    ("ranges", "places", "is_passed"),
    [
        (((0, 10, None),), [(0, 3)], True),
        (((0, 10, None),), [(0, 3), (0, 9)], True),
        (((0, 10, None),), [(0, 3), (0, 10)], False),
        (((0, 10, None),), [(1, 3)], False),
        (((0, 10, None),), [], False),
        (((0, 10, 7),), [(0, 3)], False),
        (((None, 10, None),), [(0, 3)], False),
        (((0, 10, None), (10, 2, None), (2, 12, 7)), [(0, 3)], False),
        (((0, 10, None), (10, 2, None), (2, 12, 7)), [(0, 1)], True),
        ((), [(0, 0)], False),
    ],
)
def test_offsets_are_passed_outside_where_every_commit_that_covers_them_is(
    ranges: tuple[tuple[int | None, int, int | None], ...], places: list[tuple[int, int]], is_passed: bool
) -> None:
    assert commits(*ranges).passed_outside(places) is is_passed


def test_nothing_is_concluded_from_commits_that_cannot_be_read() -> None:
    unknown = CopierCommits(group="g", unknown="no right")

    assert not unknown.passed_outside([(0, 0)])
    assert unknown.evidence([(0, 0)]) == {}
    assert unknown.to_json_dict() == {"group": "g", "unknown": "no right"}


def test_commits_reach_a_window_that_they_cover_a_part_of_or_set_the_group_back_over() -> None:
    known = commits((0, 10, None), (10, 20, None), (20, 5, None), (5, 30, None), (30, 40, None), (None, 12, None))

    reaching = known.reaching({0: (10, 25)})

    assert [(commit.lo, commit.hi) for commit in reaching.commits] == [(10, 20), (20, 5), (5, 30), (None, 12)]
    assert known.reaching({1: (0, 100)}).commits == ()


def test_evidence_has_each_commit_once() -> None:
    known = commits((0, 10, None), (10, 20, 7))

    evidence = known.evidence([(0, 1), (0, 2), (0, 11)])["copier_commits"]

    assert [(commit["lo"], commit["hi"], commit["producer_id"]) for commit in evidence] == [(0, 10, None), (10, 20, 7)]
