"""Turn the incidents of a hop's reader into those of a sink's own progress, where the file names that."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from makewhole.model.hops import Hop
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.window.readers.hop_offsets import UnknownProgress

_KINDS = {
    IncidentKind.GROUP_UNKNOWN: IncidentKind.PROGRESS_UNKNOWN,
    IncidentKind.GROUP_OUT_OF_RANGE: IncidentKind.PROGRESS_OUT_OF_RANGE,
}


def of_progress(incident: Incident, hop: Hop, unknown: Mapping[int, UnknownProgress]) -> Incident:
    """Return the incident as one of the sink's own progress; as it is where the hop names none.

    `unknown`: why the progress says nothing, by partition.
    """
    if hop.progress is None or incident.partition is None:
        return incident
    detail = {name: value for name, value in incident.detail.items() if name != "group"}
    why = unknown.get(incident.partition)
    of_sink = _named(hop, hop.progress, incident.topic, incident.partition)
    known = {} if why is None else {"unknown": asdict(why)}
    return replace(incident, kind=_KINDS.get(incident.kind, incident.kind), detail={**detail, **of_sink, **known})


def _named(hop: Hop, progress: SinkProgress, topic: str, partition: int) -> dict[str, Any]:
    return {
        "hop": hop.name,
        "progress": {
            "table": progress.table,
            "offset": progress.offset,
            "means": progress.means.value,
            "rows": progress.rows_of(topic, partition),
            "has_topic": progress.topic is not None,
            **({"is_of_files": True} if progress.is_of_files else {}),
            **({"is_shared": True} if progress.other_topics else {}),
        },
    }
