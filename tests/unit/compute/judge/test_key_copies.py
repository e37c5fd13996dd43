"""Check that the copies of a key with very many of them are the same, and are not held as rows."""

import tracemalloc
from datetime import UTC, datetime

import polars as pl
import pytest

from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.judge import key_copies
from makewhole.compute.judge.causes import explain
from makewhole.compute.judge.evidence import HopContext
from makewhole.compute.judge.judge_copies import BucketInput, judge
from makewhole.compute.judge.key_copies import KeyCopies
from makewhole.compute.keys import with_hash
from makewhole.model.points import PointKind

pytestmark = pytest.mark.unit

HOP = "ledger→topic"
MIB = 2**20


def records(keys: list[str]) -> pl.DataFrame:
    """Return records of these keys, the last one at offset 0."""
    number = len(keys)
    columns = {
        "key": keys,
        "partition": [0] * number,
        "offset": list(range(number))[::-1],
        "place": [f"0:{at}" for at in range(number)][::-1],
        "row_hash": [1] * number,
        "producer_id": [9] * number,
        "producer_epoch": [0] * number,
        "sequence": list(range(number)),
        "is_aborted": [False] * number,
        "excluded_by": [[]] * number,
        "time": [datetime(2025, 3, 1, tzinfo=UTC)] * number,
    }
    inputs = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH}
    frame = with_hash(pl.DataFrame(columns, schema_overrides=inputs).with_columns(
        pl.lit(None, dtype=kind).alias(name) for name, kind in inputs.items() if name not in columns
    ))  # fmt: skip
    return frame.with_columns(pl.lit(False).alias("is_replay"), pl.lit(False).alias("is_produced"))


def test_the_rows_of_a_key_are_the_same_however_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = records(["a", "b", "a", "c", "a", "b", "a"])
    held = KeyCopies(frame, frame)
    monkeypatch.setattr(key_copies, "_MOST_HELD", 2)
    lazy = KeyCopies(frame, frame)

    for row in frame.rows(named=True):
        first, other = held.of(row), lazy.of(row)
        assert ([*first], len(first), first[0], [*first[:2]], first[-1]) == (
            [*other],
            len(other),
            other[0],
            [*other[:2]],
            other[-1],
        )
        assert [copy["offset"] for copy in other] == sorted(copy["offset"] for copy in other)
    assert [isinstance(lazy.of(row), key_copies.ManyRows) for row in frame.rows(named=True)[:4]] == [
        True,
        False,
        True,
        False,
    ]
    assert list(lazy.of(records(["d"]).row(0, named=True))) == []


@pytest.mark.parametrize(("most_held", "is_small"), [(1_000, True), (10**9, False)])
def test_a_key_with_very_many_copies_is_explained_in_little_memory(
    monkeypatch: pytest.MonkeyPatch, most_held: int, is_small: bool
) -> None:
    monkeypatch.setattr(key_copies, "_MOST_HELD", most_held)
    source, target = records(["a"]), records(["a"] * 20_000)
    judged = judge(BucketInput(hop=HOP, source=source, target=target))
    context = HopContext(
        hop=HOP, source_kind=PointKind.LEDGER, target_kind=PointKind.TOPIC, source=source, target=target
    )
    tracemalloc.start()
    try:
        explained = explain(judged, context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert explained.select("verdict", "cause").rows() == [("duplicate", "application_resend")]
    assert (peak < 15 * MIB) == is_small
