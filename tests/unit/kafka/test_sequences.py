"""Test the sequence arithmetic and the audit of producers."""

import json
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.sequences.audit import ProducerState, SequenceAudit, merge
from makewhole.kafka.sequences.epoch_runs import LISTED_STRETCHES, Counts
from makewhole.kafka.sequences.numbering import SEQUENCES, Break, SequenceBreak, sequence_after, sequence_distance

pytestmark = pytest.mark.unit

_LAST = 2**31 - 1


class Sent(NamedTuple):
    base_offset: int
    end_offset: int
    base_sequence: int
    producer_id: int = 1
    producer_epoch: int = 0
    first_timestamp: int = 1000
    max_timestamp: int = 2000

    @property
    def record_count(self) -> int:
        return self.end_offset - self.base_offset


class Skipped(NamedTuple):
    offsets: int


Step = Sent | Skipped


def audited(*steps: Step, starts_at_zero: bool = False) -> SequenceAudit:
    audit = SequenceAudit(starts_at_zero=starts_at_zero)
    for step in steps:
        if isinstance(step, Skipped):
            audit.skip(step.offsets)
        else:
            audit.observe(step)
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
    assert [step.kind for step in audited(Sent(0, 3, 500), starts_at_zero=True).breaks] == [Break.MISSING_HEAD]


def test_a_gap_that_unseen_offsets_could_hold_is_not_noted() -> None:
    audit = audited(Sent(0, 3, 0))
    audit.skip(2)
    audit.observe(Sent(5, 6, 5))
    audit.observe(Sent(6, 7, 7))
    assert [(step.offset, step.records) for step in audit.breaks] == [(6, 1)]


def test_batches_without_a_producer_id_say_nothing() -> None:
    assert audited(Sent(0, 3, -1, producer_id=-1), Sent(3, 6, -1, producer_id=-1)).states == ()


def test_a_gap_is_as_large_as_what_unseen_offsets_cannot_hold() -> None:
    audit = audited(Sent(0, 3, 0), Skipped(2), Sent(5, 6, 10))
    assert [step.records for step in audit.breaks] == [5]


def test_a_whole_pipeline_of_batches_that_is_sent_again_is_one_repeat_of_all_its_records_and_no_gap() -> None:
    audit = audited(Sent(0, 5, 0), Sent(5, 10, 5), Sent(10, 15, 0), Sent(15, 20, 5), Sent(20, 25, 10))
    assert audit.counts == Counts(batches=5, records=25, repeats=1, repeated=10)
    assert [(step.kind, step.offset, step.records) for step in audit.breaks] == [(Break.REPEAT, 10, 10)]


def test_a_newer_epoch_that_does_not_begin_at_zero_lacks_its_head() -> None:
    audit = audited(Sent(0, 3, 0), Sent(3, 4, 7, producer_epoch=1))
    assert [(step.kind, step.producer_epoch, step.records) for step in audit.breaks] == [(Break.MISSING_HEAD, 1, 7)]


def test_wraps_are_counted_whether_inside_a_batch_or_between_two() -> None:
    assert audited(Sent(0, 8, _LAST - 7), Sent(8, 9, 0)).counts.wraps == 1
    assert audited(Sent(0, 8, _LAST - 3), Sent(8, 9, 4)).counts.wraps == 1
    assert audited(Sent(0, 8, 0), Sent(8, 9, 8)).counts.wraps == 0


def test_counts_stay_exact_where_places_are_no_longer_listed() -> None:
    batches = [Sent(index, index + 1, 3 * index) for index in range(500)]
    audit = audited(*batches)
    assert (audit.counts.gaps, audit.counts.missing) == (499, 998)
    assert len(audit.breaks) == LISTED_STRETCHES - 1
    merged = merge(merge(audited(*batches[:70]), audited(*batches[70:71])), audited(*batches[71:]))
    assert merged.counts == audit.counts
    assert merged.breaks == audit.breaks


def test_a_producer_of_thousands_of_epochs_keeps_its_first_and_its_newest() -> None:
    batches = [Sent(index, index + 1, 0, producer_epoch=index) for index in range(3000)]
    audit = audited(*batches)
    merged = merge(audited(*batches[:1000]), audited(*batches[1000:]))
    assert merged.to_json() == audit.to_json()
    (producer,) = audit.producers
    assert (producer.epochs, producer.bumps, producer.counts.records) == (3000, 2999, 3000)
    assert len(json.dumps(audit.to_json())) < 20_000


def test_the_state_that_is_carried_on_may_be_limited_to_those_who_wrote_last() -> None:
    audit = audited(Sent(0, 1, 0), Sent(1, 2, 0, producer_id=2), Sent(2, 3, 1), starts_at_zero=True)
    kept = audit.with_latest_producers(1)
    assert [producer.producer_id for producer in kept.producers] == [1]
    assert not kept.starts_at_zero
    assert audit.with_latest_producers(2).to_json() == audit.to_json()


def test_evidence_names_the_epoch_and_what_was_counted_of_the_producer() -> None:
    audit = audited(Sent(0, 3, 0), Sent(3, 4, 5), Sent(4, 5, 0, producer_epoch=1))
    evidence = audit.evidence_of(1, 0)
    assert evidence is not None
    assert (evidence["gaps"], evidence["epoch_bumps"], evidence["epochs"]) == (1, 1, 2)
    assert evidence["epoch"]["last_sequence"] == 5
    assert audit.evidence_of(2, 0) is None


@st.composite
def logs(draw: st.DrawFn) -> list[Step]:
    """A log of three producers who skip, repeat, bump and wrap, with offsets that cannot be seen."""
    steps: list[Step] = []
    offset = 0
    stands: dict[int, tuple[int, int]] = {}
    for _ in range(draw(st.integers(0, 25))):
        if draw(st.integers(0, 5)) == 0:
            steps.append(Skipped(draw(st.integers(1, 6))))
            offset += steps[-1][0]
            continue
        producer_id = draw(st.integers(1, 3))
        epoch, following = stands.get(producer_id, (0, draw(st.sampled_from([0, 0, 3, _LAST - 4]))))
        if draw(st.integers(0, 7)) == 0:
            epoch, following = epoch + draw(st.sampled_from([1, 1, 2, -1])), draw(st.sampled_from([0, 0, 4]))
        length = draw(st.integers(1, 4))
        sequence = sequence_after(following, draw(st.sampled_from([0, 0, 0, 0, 2, 5, -1, -3, -9])))
        steps.append(Sent(offset, offset + length, sequence, producer_id, epoch))
        offset += length
        stands[producer_id] = epoch, sequence_after(sequence, length)
    return steps


@given(logs(), st.lists(st.integers(0, 25), max_size=4), st.booleans())
def test_the_audit_of_the_whole_is_the_merge_of_its_pieces_however_cut(
    log: list[Step], cuts: list[int], starts_at_zero: bool
) -> None:
    bounds = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    pieces = [audited(*log[lo:hi]) for lo, hi in pairwise(bounds)]
    pieces[0].starts_at_zero = starts_at_zero
    whole = audited(*log, starts_at_zero=starts_at_zero).to_json()
    assert reduce(merge, pieces).to_json() == whole
    assert reduce(lambda later, earlier: merge(earlier, later), reversed(pieces)).to_json() == whole
    assert SequenceAudit.from_json(json.loads(json.dumps(whole))).to_json() == whole


@given(logs())
def test_merging_changes_neither_piece(log: list[Step]) -> None:
    earlier, later = audited(*log), audited(*log)
    before = earlier.to_json(), later.to_json()
    merged = merge(earlier, later)
    merged.observe(Sent(10_000, 10_001, 17))
    assert (earlier.to_json(), later.to_json()) == before


def brute_force(log: list[Step]) -> dict[int, tuple[int, int, int]]:
    """Return gaps, records missing and records repeated per producer, counted record by record."""
    stands: dict[int, tuple[int, int, int, int]] = {}  # epoch, highest, previous, unseen
    by_producer: dict[int, tuple[int, int, int]] = {}
    unseen = 0
    for step in log:
        if isinstance(step, Skipped):
            unseen += step.offsets
            continue
        gaps, missing, repeated = by_producer.get(step.producer_id, (0, 0, 0))
        epoch, highest, previous, seen = stands.get(step.producer_id, (None, 0, 0, 0))
        if epoch != step.producer_epoch:
            highest = previous = step.base_sequence - 1
        for index in range(step.record_count):
            sequence = step.base_sequence + index
            ahead = sequence_distance(sequence_after(highest), sequence % SEQUENCES)
            if ahead < 0:
                repeated += 1
            elif index == 0 and ahead > unseen - seen and sequence_distance(sequence_after(previous), sequence):
                gaps, missing = gaps + 1, missing + ahead - (unseen - seen)
            highest = sequence if ahead >= 0 else highest
            previous = sequence
        stands[step.producer_id] = step.producer_epoch, highest, previous, unseen
        by_producer[step.producer_id] = gaps, missing, repeated
    return by_producer


@given(logs())
def test_gaps_and_repeats_are_those_that_going_record_by_record_finds(log: list[Step]) -> None:
    audit = audited(*log)
    counted = {producer.producer_id: producer.counts for producer in audit.producers}
    by_producer = {producer: (counts.gaps, counts.missing, counts.repeated) for producer, counts in counted.items()}
    assert by_producer == brute_force(log)
