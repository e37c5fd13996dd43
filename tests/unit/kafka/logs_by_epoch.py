"""Define logs that are known by the leader epoch of each record, and pairs of them that share their beginning."""

from bisect import bisect_right
from dataclasses import dataclass

from hypothesis import strategies as st

from makewhole.kafka.lineage import epochs_of
from makewhole.kafka.offsets import EpochEnd
from makewhole.model.window import PartitionRange


@dataclass(frozen=True)
class Log:
    """A leader's log: the epoch of every record. `leader` is its own epoch, under which it may have written nothing."""

    records: tuple[int, ...]
    leader: int

    def ask(self, epoch: int) -> EpochEnd | None:
        """Answer as Kafka's LeaderEpochFileCache.endOffsetFor does."""
        starts = {epoch: offset for offset, epoch in reversed(list(enumerate(self.records)))}
        starts.setdefault(self.leader, len(self.records))
        epochs = sorted(starts)
        if epoch == epochs[-1]:
            return EpochEnd(epoch, len(self.records))
        at = bisect_right(epochs, epoch)
        if at == len(epochs):
            return None
        return EpochEnd(epochs[at - 1] if at else epoch, starts[epochs[at]])


def windows(log: Log, *ends: int, lineage: int = 0, lo: int = 0) -> list[PartitionRange]:
    """Windows of a log that end at `ends`, frozen while `log.leader` leads."""
    ranges = []
    for hi in ends:
        epochs = epochs_of(log.ask, log.leader, lo, hi)
        ranges.append(
            PartitionRange(topic="t", topic_id="i", partition=0, lo=lo, hi=hi, lineage=lineage, leader_epochs=epochs)
        )
        lo = hi
    return ranges


@st.composite
def diverging_logs(draw: st.DrawFn) -> tuple[Log, list[PartitionRange], Log, int]:
    """A log and its windows, another that shares its beginning, and how many records the two share."""
    old_records = tuple(sorted(draw(st.lists(st.sampled_from((0, 2, 4, 6)), min_size=1, max_size=30))))
    shared = draw(st.integers(0, len(old_records)))
    last = old_records[shared - 1] if shared else 0
    leader = old_records[-1] + draw(st.integers(0, 1))
    after = {*old_records[shared:], leader} if shared < len(old_records) else set()
    # Epochs that the two logs both have, they have at the same offsets: each had one leader.
    others = [epoch for epoch in range(last, 10) if epoch not in after and (epoch % 2 or epoch == last or epoch > 6)]
    new_tail = sorted(draw(st.lists(st.sampled_from(others), max_size=10))) if others else []
    new_records = (*old_records[:shared], *new_tail)
    old = Log(old_records, leader)
    ends = sorted({*draw(st.lists(st.integers(0, len(old_records)), max_size=3)), len(old_records)})
    return old, windows(old, *ends), Log(new_records, 11), shared
