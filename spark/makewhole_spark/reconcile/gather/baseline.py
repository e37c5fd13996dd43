"""Find the baseline of a hop: from the pipeline's start, and from when on the logs at its ends have their records."""

from collections.abc import Mapping
from datetime import datetime

from makewhole.compute.judge.baseline import Baseline, latest_of
from makewhole.kafka.offsets_by_time import plausible_time
from makewhole.model.hops import Hop
from makewhole.model.incident import Incident
from makewhole.model.points import has_log
from makewhole.window.incidents import baseline_unknown
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.snapshot.table_bounds import ALL_UNDATED, MOVED


def hop_baseline(neighbours: NeighbouringWindows, hop: Hop) -> Baseline:
    """Return the moments before which an absence at either end of a hop proves nothing.

    A log that lost its beginning has everything from the settle time after its first record on: a producer, or a
    consumer, may lag by as much. A record that lies in the window's offsets belongs to it whatever its time is, unless
    the offsets begin before the pipeline's start. A table's row may have come late, and is as old as its time says.
    """
    return Baseline(
        missing=_moment(neighbours, of=hop.source, absent_at=hop.target),
        unexpected=_moment(neighbours, of=hop.target, absent_at=hop.source),
        missing_unknown=log_beginning(neighbours, hop.target, of=hop.source),
        unexpected_unknown=log_beginning(neighbours, hop.source, of=hop.target),
        undated_missing=_has_first_undated(neighbours, hop.source),
        undated_unexpected=_has_first_undated(neighbours, hop.target),
    )


def _joined_at(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return the start of the window that reads a table first: what is older is in no window."""
    is_first = _has_first_undated(neighbours, point) and not neighbours.manifests[point].get(MOVED)
    return neighbours.context.window.start if is_first else None


def _has_first_undated(neighbours: NeighbouringWindows, point: str) -> bool:
    """Return whether a table's rows without a time are all that were there when it was first read, or first read on
    the server that has it now."""
    return bool(neighbours.manifests[point].get(ALL_UNDATED))


def _moment(neighbours: NeighbouringWindows, *, of: str, absent_at: str) -> datetime | None:
    """Return the moment before which it proves nothing that a key of one point is not at the other."""
    moments = (_start(neighbours), _whole_from(neighbours, absent_at), _joined_at(neighbours, of))
    if _is_topic(neighbours, of):
        return latest_of(*(moment for moment in moments if _begins_before(neighbours, moment)))
    return latest_of(*moments)


def _start(neighbours: NeighbouringWindows) -> datetime | None:
    """Return the pipeline's start; that of the first window where it is `latest`."""
    start = neighbours.context.pipeline.start
    if start == "latest":
        return neighbours.first.start
    return start if isinstance(start, datetime) else None


def _begins_before(neighbours: NeighbouringWindows, moment: datetime | None) -> bool:
    begins_at = neighbours.context.window.start
    return moment is not None and (begins_at is None or begins_at < moment)


def _whole_from(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return from when on a topic that lost its beginning has all records."""
    begins_at = neighbours.log(point).begins_at
    if begins_at is None:
        return None
    return begins_at + neighbours.context.pipeline.settle


def log_beginning(neighbours: NeighbouringWindows, point: str, *, of: str) -> datetime | None:
    """Return the moment before which keys of another point in this window may be older than a log, so that their
    absence from it says nothing: of the window in which the log begins, and late rows of a table.

    Of a log that begins at offset 0 the time of its first record, less the settle time; of one without records, or
    whose first records have stamps that cannot be, the time at which its first window was opened. None: the pipeline
    says where to start, or the point is no such topic.
    """
    if not _is_topic(neighbours, point):
        return None
    first, window = neighbours.first_reading(point), neighbours.context.window
    if first is not window and _is_topic(neighbours, of):
        return None
    moment = _beginning_of_lost(neighbours, point) or _beginning_of_whole(neighbours, point)
    return moment if moment is None or first is window else min(moment, window.start or moment)


def _beginning_of_lost(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return when the first window of a log was opened that lost its beginning, and whose stamps do not tell when; None
    where they do, or the pipeline's `start` is a time."""
    is_said = _start(neighbours) is not None
    return neighbours.first_reading(point).opened_at if _lost_stamps(neighbours, point) and not is_said else None


def _beginning_of_whole(neighbours: NeighbouringWindows, point: str) -> datetime | None:
    """Return when a log begins that begins at offset 0, less the settle time; None where the file has a `start`."""
    context, first = neighbours.context, neighbours.first_reading(point)
    if context.pipeline.start is not None or any(part.lo for part in first.ranges[point]):
        return None
    times = (plausible_time(stamp, first.opened_at) for stamp in _first_stamps(neighbours, point).values())
    return min((moment for moment in times if moment is not None), default=first.opened_at) - context.pipeline.settle


def _lost_stamps(neighbours: NeighbouringWindows, point: str) -> Mapping[str, int]:
    return neighbours.log(point).odd_stamps


def _first_stamps(neighbours: NeighbouringWindows, point: str) -> Mapping[str, int]:
    """Return the stamps of the first records of a log by partition, in milliseconds."""
    first = neighbours.first_reading(point)
    is_own = first is neighbours.context.window
    manifest = neighbours.manifests[point] if is_own else neighbours.manifests_of(first).get(point, {})
    return {at: stamp for at, stamp in manifest.get("first_records", {}).items() if stamp is not None}


def _odd_stamps(neighbours: NeighbouringWindows, point: str) -> dict[int, int]:
    """Return the stamps of a log's first records (milliseconds by partition) where they cannot be and decide; none
    where one of a whole log says when it began."""
    opened_at = neighbours.first_reading(point).opened_at
    stamps = _lost_stamps(neighbours, point)
    if not stamps:
        stamps = _first_stamps(neighbours, point)
        stamps = {} if any(plausible_time(stamp, opened_at) is not None for stamp in stamps.values()) else stamps
    return {int(partition): stamp for partition, stamp in stamps.items()}


def baseline_incidents(neighbours: NeighbouringWindows, older: Mapping[str, int]) -> list[Incident]:
    """Return an incident for each topic whose log older keys can say nothing about. `older`: their number by hop."""
    incidents = []
    for name, point in neighbours.context.pipeline.points.items():
        hops = [
            hop for hop in neighbours.context.pipeline.hops if name in (hop.source, hop.target) and older.get(hop.name)
        ]
        moments = [log_beginning(neighbours, name, of=hop.target if hop.source == name else hop.source) for hop in hops]
        begins_at = next((moment for moment in moments if moment is not None), None)
        if begins_at is not None and has_log(point):
            topic_id = neighbours.context.window.ranges[name][0].topic_id
            keys = sum(older[hop.name] for hop in hops)
            names, stamps = ", ".join(hop.name for hop in hops), _odd_stamps(neighbours, name)
            incidents.append(baseline_unknown(point, topic_id, names, keys, begins_at, stamps))
    return incidents


def _is_topic(neighbours: NeighbouringWindows, point: str) -> bool:
    return has_log(neighbours.context.pipeline.points[point])
