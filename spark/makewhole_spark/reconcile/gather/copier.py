"""Read how the copier of a hop from topic to topic commits its offsets, from Kafka's own log of commits.

This is evidence, and no verdict goes by it. Where the log may not be read, that is kept with the result of the hop.
"""

from collections.abc import Iterable

from makewhole.compute.judge.copier_commits import CopierCommits
from makewhole.kafka.group_commits import group_commits
from makewhole.model.errors import MakewholeError
from makewhole.model.hops import Hop
from makewhole.model.points import has_log
from makewhole.model.window import Window
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

_PATIENCE_SECONDS = 10.0


def copier_commits(neighbours: NeighbouringWindows, hop: Hop, handing: Iterable[Window]) -> CopierCommits | None:
    """Return the commits of a hop's group that cover records of this window, or of those that handed keys over; None
    where it is no group that copies a topic into a topic."""
    context, group = neighbours.context, hop.consumer_group
    source = context.pipeline.points[hop.source]
    if group is None or not has_log(source) or not has_log(context.pipeline.points[hop.target]):
        return None
    try:
        commits = group_commits(context.kafka(source), group, source.topic, patience_seconds=_PATIENCE_SECONDS)
    except MakewholeError as error:
        return CopierCommits(group=group, unknown=str(error))
    topic_ids = {part.topic_id for part in context.window.ranges.get(hop.source, ())}
    parts = [
        part
        for window in (context.window, *handing)
        for part in window.ranges.get(hop.source, ())
        if part.topic_id in topic_ids
    ]
    ranges: dict[int, tuple[int, int]] = {}
    for part in parts:
        lo, hi = ranges.get(part.partition, (part.lo, part.hi))
        ranges[part.partition] = min(lo, part.lo), max(hi, part.hi)
    return commits.reaching(ranges)
