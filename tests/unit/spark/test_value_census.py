"""Check at which keys of earlier windows a window looks: each once in a round, and of no window more than a share."""

from collections.abc import Mapping
from math import ceil

import pytest

from makewhole.compute.buckets import named_bucket
from makewhole_spark.snapshot.value_census import RoundPlace, Share, budget, shares_of, shares_to_look_at

pytestmark = pytest.mark.unit

FEW, SOME = 20_000, 60_000


def snapshots(rows: Mapping[int, int], buckets: int = 2) -> dict[int, dict[str, object]]:
    """Return manifests of so many rows by window, a file for each of their buckets."""
    return {
        number: {"rows": count, "files": {f"{at:02d}of{buckets}": [f"{number}-{at}"] for at in range(buckets)}}
        for number, count in rows.items()
    }


def a_round(rows: Mapping[int, int], most: int) -> list[list[Share]]:
    """Return what each window of a round looks at."""
    taken, place = list[list[Share]](), RoundPlace(window=1, until=max(rows))
    while not place.is_over:
        numbers = range(place.window, min(place.until, place.window + 31) + 1)
        known = {number: snapshot for number, snapshot in snapshots(rows).items() if number in numbers}
        shares, place = shares_to_look_at(known, place, numbers, most)
        taken.append(shares)
    return taken


def test_a_small_history_is_looked_at_whole_by_each_window() -> None:
    assert [[share.window for share in shares] for shares in a_round({1: 5, 2: 0, 3: 7}, FEW)] == [[1, 2, 3]]


def test_a_window_looks_at_an_eighth_of_its_own_keys_within_bounds() -> None:
    assert [budget(rows) for rows in (0, 1_000, 400_000, 10_000_000)] == [20_000, 20_000, 50_000, 200_000]
    assert [shares_of(rows) for rows in (0, 20_000, 20_001, 600_000)] == [1, 1, 2, 32]


@pytest.mark.parametrize("most", [FEW, SOME])
def test_each_key_is_looked_at_once_in_a_round_of_known_length(most: int) -> None:
    rows = dict.fromkeys(range(1, 41), 100_000)

    windows = a_round(rows, most)

    for number in rows:
        buckets = [share.bucket for shares in windows for share in shares if share.window == number]
        assert sorted(named_bucket(bucket) for bucket in buckets) == [(at, 8) for at in range(8)]
    for shares in windows:
        assert sum(rows[share.window] / 8 for share in shares) <= most
    per_window = most // 12_500 * 12_500
    assert len(windows) == ceil(40 * 100_000 / per_window)


def test_a_share_names_the_files_that_hold_its_keys() -> None:
    ((share, *_), *_) = a_round({1: 100_000}, FEW)
    assert share == Share(window=1, bucket="00of8", files=("1-0",))


def test_many_small_windows_are_read_some_at_a_time() -> None:
    windows = a_round(dict.fromkeys(range(1, 101), 3), FEW)
    assert [len(shares) for shares in windows] == [32, 32, 32, 4]


def test_windows_without_comparable_values_are_passed_over() -> None:
    place = RoundPlace(window=1, until=5)
    shares, after = shares_to_look_at(snapshots({2: 3, 5: 3}), place, range(1, 6), FEW)
    assert ([share.window for share in shares], after) == ([2, 5], RoundPlace(window=6, until=5))


def test_a_window_that_has_another_size_now_is_begun_again() -> None:
    place = RoundPlace(window=1, share=3, shares=4, until=1)
    shares, _ = shares_to_look_at(snapshots({1: 30_000}), place, range(1, 2), SOME)
    assert [share.bucket for share in shares] == ["00of2", "01of2"]
