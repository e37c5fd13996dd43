"""Read where a consumer group, or another reader, stands in a topic, held against the topic's log: against where it
begins and ends, and against the leader epochs of what the reader had read.

Offsets are used again when a log was cut off: a reader that had come past one has not read the record that is there
now. A consumer commits the leader epoch of the last record it had read beside the offset (KIP-320): where the log ends
that epoch below the offset, it is the reader's log only up to there. An offset without an epoch is taken as it is: a
consumer that starts from it goes on there, and never reads what is below.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from makewhole.kafka.offsets import CommittedOffset, EpochEnd, LogEnd, TopicLog

_LOOKS = 3
_PAUSE_SECONDS = 0.5
_NO_EPOCH = -1


@dataclass(frozen=True, kw_only=True)
class CutOff:
    """How a log shows that it was cut off since an offset was committed: the `leader_epoch` of the commit, and up to
    which offset the log is `agreed` to be the one that was read; None: that is not known."""

    leader_epoch: int
    agreed: int | None

    @property
    def text(self) -> str:
        """Where the log was cut off, in words that follow those for the log."""
        if self.agreed is None:
            return f"was cut off since; of leader epoch {self.leader_epoch}, which was read last, it has nothing"
        return f"was cut off at {self.agreed} since"


@dataclass(frozen=True, kw_only=True)
class OffsetOutOfRange:
    """An offset that a group has committed and that its partition's log, `[start, end]`, does not have; or has, but of
    other records than the group had read (`cut_off`)."""

    committed: int
    start: int
    end: int
    cut_off: CutOff | None = None

    @property
    def log_text(self) -> str:
        """The bounds of the log instead, or its cut, in words that follow those for the log."""
        return f"has {self.start} to {self.end}" if self.cut_off is None else self.cut_off.text

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as JSON types; `cut_off` only where the log was cut off."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class GroupOffsets:
    """The offset up to which a group, or another reader, is known to have come, by partition: the one that it reads
    next, or where its log was cut off since. None where it has committed nothing, or what the log does not have:
    `out_of_range` has those, and those of a log that was cut off."""

    committed: Mapping[int, int | None]
    out_of_range: Mapping[int, OffsetOutOfRange]


def read_group_offsets(log: TopicLog, group: str) -> GroupOffsets:
    """Return where a group stands in a topic, as `offsets_in_log` holds it against the log.

    Raises:
        TransientError: the brokers do not answer.
    """
    return offsets_in_log(log, lambda: log.committed_with_epochs(group))


def offsets_in_log(log: TopicLog, read: Callable[[], Mapping[int, CommittedOffset | None]]) -> GroupOffsets:
    """Return where a reader stands in a topic; `read` returns the offset that it reads next, by partition, as far as it
    has one.

    A new leader may know a lower high watermark for a moment, so that an offset is out of range when it was seen to be
    several times.

    Raises:
        TransientError: the brokers do not answer.
    """
    offsets = _look(log, read)
    for _ in range(_LOOKS - 1):
        if not offsets.out_of_range:
            break
        time.sleep(_PAUSE_SECONDS)
        offsets = _look(log, read)
    return offsets


def _look(log: TopicLog, read: Callable[[], Mapping[int, CommittedOffset | None]]) -> GroupOffsets:
    committed = read()  # before the ends, which only move on
    return hold_to_log(log, committed, log.starts(), log.high_watermarks())


def hold_to_log(
    log: TopicLog,
    committed: Mapping[int, CommittedOffset | None],
    starts: Mapping[int, LogEnd],
    ends: Mapping[int, LogEnd],
) -> GroupOffsets:
    """Return what a reader has committed, held against the log's `starts` and `ends`, and against its leader epochs."""
    present = {partition: position for partition, position in committed.items() if position is not None}
    of_log = {partition: (start.offset, ends[partition].offset) for partition, start in starts.items()}
    out_of_range = _out_of_range(present, of_log)
    within = {partition: position for partition, position in present.items() if partition not in out_of_range}
    older = {
        partition: position.leader_epoch
        for partition, position in within.items()
        if partition in of_log
        and position.offset > of_log[partition][0]
        and position.leader_epoch not in (_NO_EPOCH, ends[partition].leader_epoch)
    }
    known = log.ends_of_leader_epochs(older) if older else {}
    for partition in older:
        cut_off = _cut_off(within[partition], known[partition])
        if cut_off is not None:
            start, end = of_log[partition]
            out_of_range[partition] = OffsetOutOfRange(
                committed=within[partition].offset, start=start, end=end, cut_off=cut_off
            )
    usable: dict[int, int | None] = dict.fromkeys(committed)
    usable |= {partition: position.offset for partition, position in within.items()}
    usable |= {at: None if beyond.cut_off is None else beyond.cut_off.agreed for at, beyond in out_of_range.items()}
    return GroupOffsets(committed=usable, out_of_range=out_of_range)


def _cut_off(position: CommittedOffset, known: EpochEnd | None) -> CutOff | None:
    """Return how the log was cut off below a committed offset; None: it has what was read. `known`: where its epoch
    ends in the log, or the last one before it.

    Where the log has no record of the epoch, the records before it may be others, too: how far up is not known.
    """
    if known is None or known.epoch != position.leader_epoch:
        return CutOff(leader_epoch=position.leader_epoch, agreed=None)
    if known.end_offset < position.offset:
        return CutOff(leader_epoch=position.leader_epoch, agreed=known.end_offset)
    return None


def _out_of_range(
    committed: Mapping[int, CommittedOffset], of_log: Mapping[int, tuple[int, int]]
) -> dict[int, OffsetOutOfRange]:
    """Return the committed offsets that logs (start and end by partition) do not have."""
    return {
        partition: OffsetOutOfRange(committed=position.offset, start=of_log[partition][0], end=of_log[partition][1])
        for partition, position in committed.items()
        if partition in of_log and not of_log[partition][0] <= position.offset <= of_log[partition][1]
    }
