"""Find where what loads each hop stands, by its own progress or its consumer group, compared with the window before."""

from collections.abc import Sequence
from dataclasses import dataclass

from makewhole.kafka.iceberg_sink.standing import SinkStanding
from makewhole.kafka.offsets import log_starts
from makewhole.model.hops import Hop
from makewhole.model.incident import Incident
from makewhole.window.consumer_groups import GroupStanding, Unreached, group_incidents, standing_of
from makewhole.window.readers.hop_offsets import standing_name
from makewhole.window.readers.progress_incidents import of_progress
from makewhole.window.readers.sink_text import of_sink
from makewhole_spark.reconcile.bucket.answer import BucketAnswer
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class HopGroup:
    """Where what loads a hop's target stands, and what is wrong with that. `sink`: what Iceberg's sink says of
    itself."""

    standing: GroupStanding
    incidents: tuple[Incident, ...]
    sink: SinkStanding | None = None


def hop_groups(neighbours: NeighbouringWindows, answers: Sequence[BucketAnswer]) -> dict[str, HopGroup]:
    """Return where they stand of the hops that name a progress or a group, by hop."""
    hops = [hop for hop in neighbours.context.pipeline.hops if neighbours.group_committed(hop) is not None]
    if not hops:
        return {}
    older = neighbours.standings_before
    return {
        hop.name: _group(neighbours, hop, older.get(hop.name), [answer for answer in answers if answer.hop == hop.name])
        for hop in hops
    }


def _group(
    neighbours: NeighbouringWindows, hop: Hop, before: GroupStanding | None, answers: Sequence[BucketAnswer]
) -> HopGroup:
    point, offsets = neighbours.context.pipeline.topic(hop.source), neighbours.reader_offsets(hop)
    assert offsets is not None
    ranges = neighbours.context.window.ranges.get(hop.source, ())
    unreached: dict[int, Unreached] = {}
    for answer in answers:
        for partition, records in answer.unreached.items():
            unreached[partition] = unreached[partition] + records if partition in unreached else records
    now = standing_of(
        standing_name(hop),
        offsets.committed,
        unreached,
        ranges,
        before,
        lambda: log_starts(neighbours.context.kafka(point), point.topic),
    )
    happened = group_incidents(point, ranges, now, before, unreached, offsets.out_of_range)
    incidents = (of_sink(of_progress(incident, hop, offsets.unknown), offsets.sink) for incident in happened)
    return HopGroup(standing=now, incidents=tuple(incidents), sink=offsets.sink)
