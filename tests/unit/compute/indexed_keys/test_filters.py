"""Hold filters of the key index to the set of their keys: none of it is ever missed."""

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.indexed_keys.filters import build_filter, maybe_in
from makewhole.model.errors import CorruptionError
from makewhole.native.arrays import UInt64s

pytestmark = pytest.mark.unit

HALF = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(2**64 - 300, 2**64 - 1))
KEY = st.tuples(HALF, HALF)


def halves(keys: Collection[tuple[int, int]]) -> tuple[UInt64s, UInt64s]:
    array = np.array(list(keys), dtype=np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(array[:, 0]), np.ascontiguousarray(array[:, 1])


def some_keys(number: int, seed: int) -> tuple[UInt64s, UInt64s]:
    draw = np.random.default_rng(seed)
    high, low = (draw.integers(0, 2**64, number, dtype=np.uint64) for _ in range(2))
    return high, low


@given(st.lists(KEY, max_size=80), st.lists(KEY, max_size=80))
def test_a_filter_misses_no_key_of_its_run(known: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    content = build_filter(*halves(known))

    assert maybe_in(content, *halves(known)).all()
    asked = [*known, *others]
    is_in = maybe_in(content, *halves(asked))
    assert len(is_in) == len(asked)
    if not known:
        assert not is_in.any()


def test_a_filter_costs_some_26_bits_a_key_and_holds_few_others_for_one() -> None:
    known, others = some_keys(200_000, 1), some_keys(1_000_000, 2)
    content = build_filter(*known)

    assert 24 < len(content) * 8 / 200_000 < 29
    assert maybe_in(content, *known).all()
    assert maybe_in(content, *others).mean() < 1 / 200_000


def test_keys_of_one_prefix_of_the_hash_are_distinguished_as_well() -> None:
    (high, low), (others_high, others_low) = some_keys(50_000, 3), some_keys(50_000, 4)
    prefix = np.uint64(0xAB) << np.uint64(56)
    content = build_filter((high >> np.uint64(8)) | prefix, low)

    assert maybe_in(content, (high >> np.uint64(8)) | prefix, low).all()
    assert maybe_in(content, (others_high >> np.uint64(8)) | prefix, others_low).mean() < 1 / 2_000
    assert len(content) < 50_000 * 4


def test_a_filter_of_keys_that_no_group_can_hold_holds_every_key_for_one() -> None:
    high = np.zeros(300, dtype=np.uint64)
    content = build_filter(high, np.arange(300, dtype=np.uint64))

    assert maybe_in(content, *some_keys(10, 5)).tolist() == [True] * 10
    assert maybe_in(content, high, np.arange(300, dtype=np.uint64)).all()


def test_the_same_keys_give_the_same_filter_in_any_order_and_number() -> None:
    high, low = some_keys(1_000, 6)
    order = np.random.default_rng(7).integers(0, 1_000, 3_000)
    order = np.concatenate([order, np.arange(1_000)])

    assert build_filter(high[order], low[order]) == build_filter(high, low)


@pytest.mark.parametrize("at", [0, 5, 20, 40, -1])
def test_a_filter_that_was_changed_is_refused(at: int) -> None:
    content = bytearray(build_filter(*some_keys(100, 8)))
    content[at] ^= 1

    with pytest.raises(CorruptionError, match="a filter of the key index"):
        maybe_in(bytes(content), *some_keys(1, 9))
    with pytest.raises(CorruptionError, match="a filter of the key index"):
        maybe_in(b"", *some_keys(1, 9))
