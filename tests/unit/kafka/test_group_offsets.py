"""Test up to where a group is known to have come in a log that may have been cut off since it committed."""

from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka import group_offsets
from makewhole.kafka.group_offsets import CutOff, GroupOffsets, OffsetOutOfRange, offsets_in_log
from makewhole.kafka.offsets import CommittedOffset, EpochEnd, LogEnd, TopicLog
from makewhole.model.window import PartitionRange
from tests.unit.kafka.logs_by_epoch import Log, diverging_logs

pytestmark = pytest.mark.unit


class OneLog:
    """A topic of one partition, as `TopicLog` asks about it."""

    def __init__(self, log: Log, start: int = 0) -> None:
        self._log, self._start = log, start

    def starts(self) -> dict[int, LogEnd]:
        return {0: LogEnd(self._start, -1)}

    def high_watermarks(self) -> dict[int, LogEnd]:
        return {0: LogEnd(len(self._log.records), self._log.leader)}

    def ends_of_leader_epochs(self, epochs: Mapping[int, int]) -> dict[int, EpochEnd | None]:
        return {partition: self._log.ask(epoch) for partition, epoch in epochs.items()}


@pytest.fixture(autouse=True, scope="module")
def _without_pause() -> Iterator[None]:
    """Nothing of these logs changes between two looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_offsets, "_PAUSE_SECONDS", 0)
        yield


def standing(log: Log, offset: int, epoch: int = -1, start: int = 0) -> GroupOffsets:
    return offsets_in_log(cast(TopicLog, OneLog(log, start)), lambda: {0: CommittedOffset(offset, epoch)})


def cut(committed: int, end: int, epoch: int, agreed: int | None) -> GroupOffsets:
    beyond = OffsetOutOfRange(committed=committed, start=0, end=end, cut_off=CutOff(leader_epoch=epoch, agreed=agreed))
    return GroupOffsets(committed={0: agreed}, out_of_range={0: beyond})


def test_an_offset_of_a_log_that_was_cut_off_counts_up_to_where_its_epoch_ends() -> None:
    new = Log((0,) * 60 + (1,) * 100, 1)

    assert standing(new, 100, 0) == cut(100, 160, 0, 60)
    for offset, epoch in ((60, 0), (100, 1), (160, 1), (0, 7)):
        assert standing(new, offset, epoch) == GroupOffsets(committed={0: offset}, out_of_range={})


def test_nothing_is_known_of_an_offset_whose_epoch_the_log_does_not_have() -> None:
    """Two unclean elections: other records of the epoch before are where those of the lost epoch were."""
    assert standing(Log((0,) * 160 + (2,) * 10, 2), 100, 1) == cut(100, 170, 1, None)
    assert standing(Log((0,) * 160, 0), 100, 7) == cut(100, 160, 7, None)


def test_an_offset_without_an_epoch_is_taken_as_it_is() -> None:
    assert standing(Log((0,) * 60 + (1,) * 100, 1), 100) == GroupOffsets(committed={0: 100}, out_of_range={})


def test_an_offset_at_the_beginning_of_the_log_needs_no_epoch() -> None:
    assert standing(Log((3,) * 60, 3), 40, 1, start=40) == GroupOffsets(committed={0: 40}, out_of_range={})


@given(diverging_logs(), st.data())
def test_no_record_counts_as_passed_that_the_group_has_not_read(
    case: tuple[Log, list[PartitionRange], Log, int], data: st.DataObject
) -> None:
    old, _, new, shared = case
    offset = data.draw(st.integers(1, len(old.records)))

    known = standing(new, offset, old.records[offset - 1]).committed[0]

    assert known is None or known <= shared
    if offset <= shared:
        assert known == offset, "what was read is there, and nothing is in doubt"
