"""Test which keys of a topic have several records, and what these are, against records looked at one by one."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.frames import HASHES, KEYS
from makewhole.compute.judge.repeated_keys import REPEATED, Order, repeated_keys

pytestmark = pytest.mark.unit


class Copy(NamedTuple):
    """A record: its key, its value (None: not known), and what else it is."""

    key: int
    value: int | None = 1
    version: int | None = None
    partition: int = 0
    is_tombstone: bool = False
    is_aborted: bool = False
    is_replay: bool = False


_COPIES = {
    "key": pl.String,
    **HASHES,
    **{name: KEYS[name] for name in ("row_hash", "version", "place")},
    "partition": pl.Int32,
    "offset": pl.Int64,
    **dict.fromkeys(("is_tombstone", "is_aborted", "is_replay", "is_produced"), pl.Boolean),
}
_OF_COPY = ("place", "row_hash", "version", "is_tombstone")
_BEFORE = {
    **HASHES,
    "window": pl.Int32,
    "is_extra": pl.Boolean,
    **{name: _COPIES[name] for name in _OF_COPY},
    **{f"last_{name}": _COPIES[name] for name in _OF_COPY},
}


def frame_of(copies: Sequence[Copy]) -> pl.DataFrame:
    """Return the records as a window has them, in one log."""
    rows = [
        {
            "key": f"K{copy.key}",
            "key_hi": copy.key,
            "key_lo": 7,
            "row_hash": None if copy.is_tombstone else copy.value,
            "version": None if copy.version is None else Decimal(copy.version),
            "place": f"{copy.partition}:{offset}",
            "partition": copy.partition,
            "offset": offset,
            "is_tombstone": copy.is_tombstone,
            "is_aborted": copy.is_aborted,
            "is_replay": copy.is_replay,
            "is_produced": False,
        }
        for offset, copy in enumerate(copies)
    ]
    return pl.DataFrame(rows, schema=_COPIES)


def before_of(copies: Sequence[Copy]) -> pl.DataFrame:
    """Return records of windows before as the index has them, a window each."""
    rows = [
        {
            "key_hi": copy.key,
            "key_lo": 7,
            "window": window,
            "is_extra": False,
            "place": f"w{window}",
            "row_hash": copy.value,
            "version": None if copy.version is None else Decimal(copy.version),
            "is_tombstone": copy.is_tombstone,
        }
        for window, copy in enumerate(copies)
    ]
    frame = pl.DataFrame(rows, schema={name: kind for name, kind in _BEFORE.items() if not name.startswith("last_")})
    return frame.with_columns(pl.col(name).alias(f"last_{name}") for name in _OF_COPY).select(*_BEFORE)


def found(
    copies: Sequence[Copy],
    before: Sequence[Copy] = (),
    order: Order = Order.NOTHING,
    *,
    is_compared: bool = True,
) -> dict[str, tuple[str, int]]:
    """Return what is found, by key: what its records are, and how many there are beyond the first."""
    result = repeated_keys(frame_of(copies), before_of(before), order, is_compared=is_compared)
    assert result.schema == pl.Schema(REPEATED)
    return {row["key"]: (row["repeat"], row["extra"]) for row in result.to_dicts()}


def test_records_are_resends_or_conflicts_or_not_known() -> None:
    copies = [
        Copy(1),
        Copy(2),
        Copy(3),
        Copy(1),
        Copy(2, 9),
        Copy(4),
        Copy(4, None),
        Copy(5, None),
        Copy(2),
        Copy(6, 2),
    ]
    copies += [Copy(6, None), Copy(6, 3)]
    assert found(copies) == {
        "K1": ("resend", 1),
        "K2": ("conflict", 2),
        "K4": ("unknown", 1),
        "K6": ("conflict", 2),
    }


def test_where_nothing_is_compared_it_is_not_known_whether_they_are_the_same() -> None:
    assert found([Copy(1), Copy(1), Copy(2)], is_compared=False) == {"K1": ("unknown", 1)}


def test_aborted_records_tombstones_and_what_compensation_wrote_are_no_second_ones() -> None:
    copies = [Copy(1), Copy(1, is_aborted=True), Copy(2), Copy(2, is_replay=True), Copy(3), Copy(3, is_tombstone=True)]
    assert found(copies) == {}
    assert found([*copies, Copy(3), Copy(3, is_tombstone=True), Copy(3), Copy(3)]) == {"K3": ("resend", 1)}


def test_a_record_of_another_version_is_no_second_one() -> None:
    copies = [
        Copy(1, 1, 1),
        Copy(1, 2, 2),
        Copy(2, 1, 1),
        Copy(2, 1, 1),
        Copy(3, 1, 1),
        Copy(3, 2, 1),
        Copy(4),
        Copy(4),
    ]
    assert found(copies, order=Order.VERSION) == {"K2": ("resend", 1), "K3": ("conflict", 1), "K4": ("resend", 1)}


def test_by_the_log_a_value_that_was_there_before_another_one_is_a_newer_state() -> None:
    copies = [Copy(1, 1), Copy(1, 2), Copy(1, 1), Copy(2, 1), Copy(2, 1), Copy(3, 1), Copy(3, 1, partition=1)]
    assert found(copies, order=Order.LOG) == {"K2": ("resend", 1), "K3": ("resend", 1)}


def test_by_the_log_states_in_two_partitions_are_held_together_by_their_values() -> None:
    """A key moves where its topic gets partitions: nothing says which of the states was first."""
    moved = [Copy(1, 1), Copy(1, 2), Copy(1, 3, partition=1), Copy(1, 4, partition=1)]
    again = [Copy(2, 1), Copy(2, 2), Copy(2, 1), Copy(2, 2, partition=1), Copy(3, 1), Copy(3, None, partition=1)]
    assert found([*moved, *again], order=Order.LOG) == {"K2": ("resend", 1)}


def test_what_windows_before_had_makes_a_record_a_second_one() -> None:
    copies, before = [Copy(1), Copy(2, 5), Copy(3), Copy(4), Copy(4)], [Copy(1), Copy(2), Copy(3, is_tombstone=True)]
    assert found(copies, before) == {"K1": ("resend", 1), "K2": ("conflict", 1), "K4": ("resend", 1)}
    assert found(copies, before, Order.LOG) == {"K4": ("resend", 1)}
    versions = [Copy(1, 1, 1), Copy(2, 5, 2), Copy(5, 2, 3)]
    older = [Copy(1, 1, 1), Copy(2, 4, 1), Copy(5, 1, 3)]
    assert found(versions, older, Order.VERSION) == {"K1": ("resend", 1), "K5": ("conflict", 1)}
    assert found([Copy(3, is_tombstone=True), Copy(3)], [Copy(3)]) == {}


def test_a_version_that_a_window_before_may_have_had_between_its_first_and_its_latest_is_not_known() -> None:
    before = before_of([Copy(1, 1, 1), Copy(2, 1, 1)]).with_columns(
        last_version=pl.lit(Decimal(4)).cast(_BEFORE["version"]), last_place=pl.lit("w9")
    )
    copies = [Copy(1, 3, 3), Copy(1, 5, 5), Copy(2, 1, 4), Copy(3, 2, 2)]
    judged = repeated_keys(frame_of(copies), before, Order.VERSION, is_compared=True)
    assert judged.select("key", "repeat", "extra").rows() == [("K1", "unknown", 1), ("K2", "resend", 1)]
    assert found([Copy(1, 3, 3)], [Copy(1, 1, 1), Copy(1, 4, 4)], Order.VERSION) == {}


_DRAWN = st.lists(
    st.builds(
        Copy,
        st.integers(1, 4),
        st.sampled_from([1, 2, None]),
        st.just(None),
        st.integers(0, 1),
        is_tombstone=st.sampled_from([False, False, False, True]),
        is_aborted=st.sampled_from([False, False, True]),
    ),
    max_size=12,
)


_BEFORE_DRAWN = st.tuples(st.integers(1, 4), st.sampled_from([1, 2, None])).map(lambda drawn: Copy(*drawn))


@given(copies=_DRAWN, before=st.lists(_BEFORE_DRAWN, max_size=4))
def test_it_is_as_records_looked_at_one_by_one(copies: list[Copy], before: list[Copy]) -> None:
    expected: dict[str, tuple[str, int]] = {}
    for key in {copy.key for copy in copies}:
        own = [copy for copy in copies if copy.key == key and not (copy.is_aborted or copy.is_replay)]
        lives: dict[int, list[int | None]] = {}
        for at, copy in enumerate(own):
            life = sum(sent.is_tombstone and sent.partition == copy.partition for sent in own[:at])
            if not copy.is_tombstone:
                lives.setdefault(life, []).append(copy.value)
        earlier = [copy.value for copy in before if copy.key == key][-1:]
        kinds, extra = set(), 0
        for life, values in lives.items():
            known = [*values, *(earlier if life == 0 else [])]
            if len(known) > 1:
                several = set(known) - {None}
                kinds.add("conflict" if len(several) > 1 else "unknown" if None in known else "resend")
                extra += len(known) - 1
        if kinds:
            worst = next(kind for kind in ("conflict", "unknown", "resend") if kind in kinds)
            expected[f"K{key}"] = (worst, extra)
    assert found(copies, before) == expected
