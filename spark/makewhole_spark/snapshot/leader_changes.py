"""Look into the changes of leader of a topic that nothing upstream vouches for, when its snapshot is taken."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.kafka.topics import describe_settings
from makewhole.lake.storage import Storage
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import TopicPoint
from makewhole.window.context import WindowContext
from makewhole.window.reach.chains import first_points
from makewhole.window.reach.leader_changes import doubts_of_records, doubts_of_settings
from makewhole_spark.snapshot.accounts import PartitionAccount


def with_doubts(
    context: WindowContext,
    point: TopicPoint,
    accounts: Sequence[PartitionAccount],
    manifests: tuple[Mapping[str, Any], Mapping[str, Any]],
    found: Sequence[Incident],
) -> list[Incident]:
    """Return the incidents of a topic, its changes of leader with `doubts`.

    `manifests`: of the window before, and of this one. The brokers are asked only where a leader changed.
    """
    is_first = point.name in first_points(context.pipeline)
    if not is_first or all(one.kind is not IncidentKind.LEADER_CHANGED for one in found):
        return list(found)
    settings = doubts_of_settings(describe_settings(context.kafka(point), point.topic))
    unnumbered = sum(read.unnumbered for one in accounts for read in one.reads)
    before, now = (_breaks(context.storage, manifest) for manifest in manifests)

    def doubts(one: Incident) -> dict[str, int]:
        place = str(one.partition)
        breaks = now.get(place, 0) - before.get(place, 0)
        return settings | doubts_of_records(unnumbered=unnumbered, breaks=breaks)

    return [
        replace(one, detail={**one.detail, "doubts": doubts(one)}) if one.kind is IncidentKind.LEADER_CHANGED else one
        for one in found
    ]


def _breaks(storage: Storage, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return by partition how often the numbering of a producer has a gap, since the first window."""
    if "sequences" not in manifest:
        return {}
    partitions = json.loads(storage.read_bytes(manifest["sequences"]))["partitions"]
    counts = {partition: SequenceAudit.from_json(known["audit"]).counts for partition, known in partitions.items()}
    return {partition: found.gaps + found.missing_heads for partition, found in counts.items()}
