"""Test which keys transactions in doubt may hold, when they are known from several lists."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from makewhole.tables.in_doubt import TransactionInDoubt, refusal_by_doubt, together

pytestmark = pytest.mark.unit

FILE = TransactionInDoubt(
    gid="a.parquet", owner="", prepared=datetime(2026, 11, 1, tzinfo=UTC), is_file=True, keys=frozenset({"O1"})
)


def test_what_is_known_from_several_lists_may_hold_the_keys_of_each() -> None:
    [both] = together([FILE], [replace(FILE, keys=frozenset({"O2"}))])
    assert both.keys == frozenset({"O1", "O2"})
    assert [both.may_hold(key) for key in ("O1", "O2", "O3")] == [True, True, False]


def test_what_may_hold_any_key_in_one_list_may_hold_any() -> None:
    for lists in (([FILE], [replace(FILE, keys=None)]), ([replace(FILE, keys=None)], [FILE])):
        [both] = together(*lists)
        assert both.keys is None
        assert both.may_hold("O3")


def test_a_key_that_may_be_in_a_file_that_cannot_be_read_is_refused_with_what_to_do() -> None:
    refusal = refusal_by_doubt("the key in store", [replace(FILE, is_unreadable=True)])
    assert str(refusal) == (
        "in doubt: the key in store may be in file a.parquet, written 2026-11-01 00:00 UTC, which cannot be read: it "
        "would be there twice once that is restored. Have it written again, or move it out of the dataset, then run "
        "this window again"
    )
