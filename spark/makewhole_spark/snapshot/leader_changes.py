"""Look into the changes of leader of a topic that nothing upstream vouches for, when its snapshot is taken."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from makewhole.journal import incidents
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.kafka.topics import describe_settings
from makewhole.lake.storage import Storage
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TopicPoint
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.reach.chains import first_points
from makewhole.window.reach.leader_changes import doubts_of_records, doubts_of_settings, with_earlier
from makewhole_spark.snapshot.accounts import PartitionAccount


@dataclass(frozen=True, kw_only=True)
class TopicReading:
    """Hold what was read of a topic for a window. `before` and `manifest`: of the window before, and of this one."""

    context: WindowContext
    point: TopicPoint
    accounts: Sequence[PartitionAccount]
    before: Mapping[str, Any]
    manifest: Mapping[str, Any]


def with_doubts(journal: PgConnection, reading: TopicReading, happened: Sequence[Incident]) -> list[Incident]:
    """Return the incidents of a topic, its changes of leader with `doubts`.

    The brokers are asked only where a leader changed in a topic that no hop leads into.
    """
    context, point = reading.context, reading.point
    changes = [incident for incident in happened if incident.kind is IncidentKind.LEADER_CHANGED]
    if not changes or point.name not in first_points(context.pipeline):
        return list(happened)
    settings = doubts_of_settings(describe_settings(context.kafka(point), point.topic))
    unnumbered = sum(read.unnumbered for account in reading.accounts for read in account.reads)
    before, now = (_breaks(context.storage, manifest) for manifest in (reading.before, reading.manifest))
    earlier = _of_earlier_revisions(journal, context.window)

    def looked_into(change: Incident) -> Incident:
        breaks = now.get(str(change.partition), 0) - before.get(str(change.partition), 0)
        doubts = settings | doubts_of_records(unnumbered=unnumbered, breaks=breaks)
        return replace(change, detail={**change.detail, "doubts": with_earlier(doubts, change, earlier)})

    return [looked_into(incident) if incident in changes else incident for incident in happened]


def _of_earlier_revisions(journal: PgConnection, window: Window) -> list[Incident]:
    revisions = (replace(window, revision=revision) for revision in range(1, window.revision))
    return [incident for revision in revisions for incident in incidents.of(journal, revision)]


def _breaks(storage: Storage, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return by partition how often the numbering of a producer has a gap, since the first window."""
    if "sequences" not in manifest:
        return {}
    partitions = json.loads(storage.read_bytes(manifest["sequences"]))["partitions"]
    counts = {partition: SequenceAudit.from_json(known["audit"]).counts for partition, known in partitions.items()}
    return {partition: count.gaps + count.missing_heads for partition, count in counts.items()}
