"""Test which keys files in doubt may hold: those that they may hold at all, and under upsert those with a row, too."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import HASH
from makewhole.model.verdict import Verdict
from makewhole.tables.in_doubt import KeysInDoubt, TransactionInDoubt
from makewhole_spark.reconcile.judge.in_doubt import KeysHeld, keys_held

pytestmark = pytest.mark.unit

ABSENT, MISMATCHED, OTHER = "O1", "O2", "O3"
JUDGED = pl.DataFrame(
    {
        "key": [ABSENT, MISMATCHED, OTHER],
        "key_hash": ["1", "2", "3"],
        "key_hi": [1, 2, 3],
        "key_lo": [1, 2, 3],
        "verdict": [Verdict.MISSING.value, Verdict.MISMATCHED.value, Verdict.MISSING.value],
    },
    schema_overrides={"key_hi": pl.UInt64, "key_lo": pl.UInt64},
)
ROWS = JUDGED.filter(pl.col("key") == MISMATCHED).select(*HASH)


def file(*keys: str, is_unreadable: bool = False) -> TransactionInDoubt:
    """Return a file that may hold these keys; any key where none is given."""
    return TransactionInDoubt(
        gid=f"{'-'.join(keys)}.parquet",
        owner="",
        prepared=datetime(2026, 11, 1, tzinfo=UTC),
        is_file=True,
        is_unreadable=is_unreadable,
        keys=frozenset(keys) if keys else None,
    )


def held_by(files: Sequence[TransactionInDoubt], *, is_upsert: bool = False) -> KeysHeld:
    """Return what is held where these files are in doubt at each look."""
    tables = SimpleNamespace(keys_in_doubt=lambda _shape, _keys: KeysInDoubt(transactions=tuple(files)))
    context = SimpleNamespace(tables=lambda _: tables, table_shape=lambda _: None)
    task: Any = SimpleNamespace(context=context, known_since=SimpleNamespace(in_doubt=()), is_upsert=is_upsert)
    target: Any = None
    return keys_held(task, target, ROWS, JUDGED, tuple(files))


def keys_of(frame: pl.DataFrame) -> list[str]:
    return JUDGED.join(frame, on=HASH, how="semi")["key"].to_list()


def test_a_key_that_a_file_does_not_hold_is_not_held_by_it() -> None:
    held = held_by([file(ABSENT)])
    assert (keys_of(held.keys), keys_of(held.unread)) == ([ABSENT], [])


def test_a_file_that_may_hold_any_key_holds_every_one_without_a_row() -> None:
    held = held_by([file(is_unreadable=True)])
    assert (keys_of(held.keys), keys_of(held.unread)) == ([ABSENT, OTHER], [ABSENT, OTHER])


def test_only_what_may_be_in_a_file_that_cannot_be_read_waits_without_an_end() -> None:
    held = held_by([file(ABSENT), file(OTHER, is_unreadable=True)])
    assert (keys_of(held.keys), keys_of(held.unread)) == ([ABSENT, OTHER], [OTHER])


def test_under_upsert_a_file_may_hold_the_latest_version_of_a_key_with_a_row() -> None:
    assert keys_of(held_by([file(ABSENT, MISMATCHED)], is_upsert=True).keys) == [ABSENT, MISMATCHED]
    assert keys_of(held_by([file(ABSENT, MISMATCHED)]).keys) == [ABSENT]
