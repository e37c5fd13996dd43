"""Sequence arithmetic and the audit of producers."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.sequences import (
    SEQUENCES,
    Break,
    ProducerState,
    SequenceAudit,
    SequenceBreak,
    sequence_after,
    sequence_distance,
)

pytestmark = pytest.mark.unit

_LAST = 2**31 - 1


class Sent(NamedTuple):
    base_offset: int
    end_offset: int
    base_sequence: int
    producer_id: int = 1
    producer_epoch: int = 0


def audited(*batches: Sent, starts_at_zero: bool = False) -> SequenceAudit:
    audit = SequenceAudit(starts_at_zero=starts_at_zero)
    for batch in batches:
        audit.observe(batch)
    return audit


def test_the_sequence_wraps_from_its_last_value_to_zero() -> None:
    assert sequence_after(_LAST) == 0
    assert sequence_after(_LAST - 1, 5) == 3


@given(st.integers(0, _LAST), st.integers(-(2**30) + 1, 2**30 - 1))
def test_distance_is_the_inverse_of_moving_on_across_the_wrap(start: int, step: int) -> None:
    assert sequence_distance(start, (start + step) % SEQUENCES) == step


def test_batches_in_order_across_the_wrap_break_nothing() -> None:
    audit = audited(Sent(0, 8, 2147483640), Sent(8, 12, 0), Sent(12, 13, 4))
    assert audit.breaks == []
    assert audit.states == (ProducerState(producer_id=1, producer_epoch=0, next_sequence=5, end_offset=13),)


def test_a_skipped_sequence_is_a_gap_of_its_size() -> None:
    assert audited(Sent(0, 3, 0), Sent(3, 4, 5)).breaks == [
        SequenceBreak(kind=Break.GAP, producer_id=1, producer_epoch=0, offset=3, expected=3, found=5, records=2)
    ]


def test_the_same_sequences_at_new_offsets_are_a_repeat() -> None:
    assert audited(Sent(0, 3, 0), Sent(3, 6, 0)).breaks == [
        SequenceBreak(kind=Break.REPEAT, producer_id=1, producer_epoch=0, offset=3, expected=3, found=0, records=3)
    ]


def test_a_new_epoch_starts_again_without_a_break() -> None:
    assert audited(Sent(0, 3, 0), Sent(3, 6, 0, producer_epoch=1)).breaks == []


def test_a_batch_that_is_seen_again_by_the_next_range_is_no_repeat() -> None:
    assert audited(Sent(0, 3, 0), Sent(0, 3, 0), Sent(3, 4, 3)).breaks == []


def test_a_missing_head_shows_only_where_the_log_is_known_from_its_start() -> None:
    assert audited(Sent(0, 3, 500)).breaks == []
    assert [found.kind for found in audited(Sent(0, 3, 500), starts_at_zero=True).breaks] == [Break.MISSING_HEAD]


def test_a_gap_that_unseen_offsets_could_hold_is_not_noted() -> None:
    audit = audited(Sent(0, 3, 0))
    audit.skip(2)
    audit.observe(Sent(5, 6, 5))
    audit.observe(Sent(6, 7, 7))
    assert [(found.offset, found.records) for found in audit.breaks] == [(6, 1)]


def test_batches_without_a_producer_id_say_nothing() -> None:
    assert audited(Sent(0, 3, -1, producer_id=-1), Sent(3, 6, -1, producer_id=-1)).states == ()


def test_the_states_of_one_range_carry_into_the_next() -> None:
    first = audited(Sent(0, 3, 0))
    second = SequenceAudit(first.states)
    second.observe(Sent(3, 4, 4))
    assert [found.records for found in second.breaks] == [1]
