"""Show that the records of a window are in its topic as they were read: by the topic's id, its start and its epochs.

A record in a log never changes. So a slice is the one that was read where the topic is the same one, no leader cut the
log off below its end (KIP-101: epochs tell), and nothing of it was deleted or compacted. What could not be read then,
or was gone, may be read otherwise now: such a slice is read again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from makewhole.kafka.lineage import divergence
from makewhole.kafka.offsets import EpochEnd, TopicLog
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext

_COMPACTS = "compact"


def why_not_same_log(context: WindowContext, point: TopicPoint, manifest: Mapping[str, Any]) -> str | None:
    """Return why a topic may have other records than a snapshot of it; None: it has the same.

    Raises:
        TransientError: the brokers do not answer.
    """
    sums = manifest["accounting"]
    for what in ("expired", "compacted", "undecodable"):
        if sums.get(what):
            return f"{sums[what]:,} of its offsets were {what}"
    ranges = context.window.ranges[point.name]
    with TopicLog(context.kafka(point), point.topic) as log:
        reason = why_not_same_records(log, ranges)
        if reason is not None:
            return reason
        policy = log.settings().settings.get("cleanup.policy")
        if policy is None:
            return "the settings of the topic may not be read"
        if _COMPACTS in (policy.value or ""):
            return "the topic is compacted"
        starts = {partition: start.offset for partition, start in log.starts().items()}
        deleted = [part for part in ranges if part.span and starts.get(part.partition, part.hi) > part.lo]
        return f"records of partition {deleted[0].partition} were deleted" if deleted else None


def why_not_same_records(log: TopicLog, ranges: Sequence[PartitionRange]) -> str | None:
    """Return why the offsets of a window may be of other records in its topic; None: they are of the same, as far as
    these are there."""
    held = [part for part in ranges if part.span]
    if {part.topic_id for part in held} - {log.describe().topic_id}:
        return "the topic was made again"
    return next((why for part in held if (why := _why_cut_off(log, part)) is not None), None)


def _why_cut_off(log: TopicLog, part: PartitionRange) -> str | None:
    if not part.leader_epochs:
        return f"the leader epochs of partition {part.partition} are not known"

    def end_of(epoch: int) -> EpochEnd | None:
        return log.end_of_leader_epoch(part.partition, epoch)

    if divergence(end_of, part.leader_epochs, part.lo) < part.hi:
        return f"partition {part.partition} was cut off by a new leader"
    return None
