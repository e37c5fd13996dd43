"""Find the baseline of a hop: from the pipeline's start, and from when on the logs at its ends have their records."""

from collections.abc import Mapping
from datetime import datetime
from itertools import chain

from makewhole.compute.judge.baseline import Baseline, earliest_record, latest_of
from makewhole.kafka.offsets_by_time import record_time
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Hop, TopicPoint
from makewhole.window.incidents import baseline_unknown
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


def hop_baseline(neighbours: NeighbouringWindows, hop: Hop) -> Baseline:
    """Return the moments before which an absence at either end of a hop proves nothing.

    A log that lost its beginning has everything from the settle time after its first record on: a producer, or a
    consumer, may lag by as much. A record that lies in the window's offsets belongs to it whatever its time is, unless
    the offsets begin before the pipeline's start.
    """
    start = _start(neighbours)
    of_records = start if _begins_before(neighbours, start) else None
    return Baseline(
        missing=latest_of(
            of_records if _is_topic(neighbours, hop.source) else start, _whole_from(neighbours, hop.target)
        ),
        unexpected=latest_of(
            of_records if _is_topic(neighbours, hop.target) else start, _whole_from(neighbours, hop.source)
        ),
        missing_unknown=log_beginning(neighbours, hop.target),
        unexpected_unknown=log_beginning(neighbours, hop.source),
    )


def _start(neighbours: NeighbouringWindows) -> datetime | None:
    """Return the pipeline's start; that of the first window where it is `latest`."""
    start = neighbours.context.pipeline.start
    if start == "latest":
        return next(chain(neighbours.earlier, [neighbours.context.window])).start
    return start if isinstance(start, datetime) else None


def _begins_before(neighbours: NeighbouringWindows, moment: datetime | None) -> bool:
    begins_at = neighbours.context.window.start
    return moment is not None and (begins_at is None or begins_at < moment)


def _whole_from(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return from when on a topic that lost its beginning has all records, where the window reaches further back."""
    begins_at = neighbours.log(point).begins_at
    if begins_at is None:
        return None
    whole_from = begins_at + neighbours.context.pipeline.settle
    return whole_from if _begins_before(neighbours, whole_from) else None


def log_beginning(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return the time, less the settle time, of the first record of a log that begins at offset 0 in this window.

    None: the pipeline says where to start, or the point is no such topic. A log without records begins now.
    """
    context = neighbours.context
    if context.pipeline.start is not None or not _is_topic(neighbours, point):
        return None
    if any(window.ranges.get(point) for window in neighbours.earlier):
        return None
    if any(part.lo for part in context.window.ranges[point]):
        return None
    stamp = earliest_record(neighbours.manifests[point].get("first_records", {}))
    begins_at = None if stamp is None else record_time(stamp)
    return min(begins_at or context.window.opened_at, context.window.opened_at) - context.pipeline.settle


def baseline_incidents(neighbours: NeighbouringWindows, older: Mapping[str, int]) -> list[Incident]:
    """Return an incident for each topic whose log older keys can say nothing about. `older`: their number by hop."""
    found = []
    for name in neighbours.manifests:
        begins_at, point = log_beginning(neighbours, name), neighbours.context.pipeline.points[name]
        hops = [
            hop.name
            for hop in neighbours.context.pipeline.hops
            if name in (hop.source, hop.target) and older.get(hop.name)
        ]
        if begins_at is not None and hops and isinstance(point, TopicPoint):
            topic_id = neighbours.context.window.ranges[name][0].topic_id
            keys = sum(older[hop] for hop in hops)
            found.append(baseline_unknown(point, topic_id, ", ".join(hops), keys, begins_at))
    return found


def _is_topic(neighbours: NeighbouringWindows, point: str) -> bool:
    return isinstance(neighbours.context.pipeline.points[point], TopicPoint)
