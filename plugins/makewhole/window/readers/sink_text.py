"""Describe in words where Iceberg's sink stands, and where its group, its control topic and its table disagree."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from makewhole.kafka.iceberg_sink.control_topic import coordinator_group
from makewhole.kafka.iceberg_sink.standing import SinkStanding
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.text import counted

SINK = "sink"
"""The name under which what a hop's sink says of itself is kept beside its result."""
_OF_SINKS = (IncidentKind.GROUP_UNKNOWN, IncidentKind.CONSUMER_STALLED)


def sink_sentences(target: str, sink: Mapping[str, Any]) -> list[str]:
    """Return what is known of a sink as sentences without their full stops; `sink` is kept with a hop's result."""
    group, control = sink["group"], sink["control_topic"]
    sentences = [
        f"group `{group}` stands at {_by_partition(sink['group_offsets'])}, and its table {target} at "
        f"{_by_partition(sink['next_offsets'])}"
        if sink["next_offsets"] != sink["group_offsets"]
        else f"group `{group}` and its table {target} stand at {_by_partition(sink['group_offsets'])}"
    ]
    if sink["to_come"]["files"]:
        sentences.append(
            f"{_files(sink['to_come'])} that the sink wrote are not in {target} yet: its coordinator commits them when "
            "it runs"
        )
    if sink["passed_over"]["files"]:
        sentences.append(
            f"{_files(sink['passed_over'])} that the sink wrote are not in {target} and never will be, for "
            f"{_coordinator(sink, group)}: {', '.join(sink['passed_over']['names'])}"
        )
    beyond = _beyond(sink)
    if beyond:
        sentences.append(
            f"{target} has a commit of the sink at {_by_partition(beyond)} of {control}, which ends before that: it "
            "was made again, and the sink skips every event up to there"
        )
    return sentences


def sink_evidence_text(sink: Mapping[str, Any]) -> str:
    """Return what a finding says of a sink."""
    text = f"group at {_by_partition(sink['group_offsets'])}, table at {_by_partition(sink['table_offsets'])}"
    if sink["snapshot"] is None:
        return f"{text}; no snapshot of the table is the sink's"
    commit = "" if sink["commit"] is None else f", commit {sink['commit']}"
    return (
        f"{text}; the table has {sink['control_topic']} up to {_by_partition(sink['control_offsets'])} by snapshot "
        f"{sink['snapshot']}{commit}"
    )


def unknown_sink(sink: SinkStanding, partition: int) -> str | None:
    """Return why it is not known how far a sink has brought a partition; None: it is known, or its group has committed
    nothing there."""
    if sink.next_offsets.get(partition) is not None or sink.group_offsets.get(partition) is None:
        return None
    if sink.unreadable:
        return f"{counted(sink.unreadable, 'record')} of {sink.control_topic} cannot be read"
    return f"{sink.control_topic} does not reach back to the last records that the sink has brought into its table"


def of_sink(incident: Incident, sink: SinkStanding | None) -> Incident:
    """Return an incident of a sink's group with what the sink says of itself; as it is where it is none."""
    if sink is None or incident.partition is None or incident.kind not in _OF_SINKS:
        return incident
    known = {
        "control_topic": sink.control_topic,
        "group_committed": sink.group_offsets.get(incident.partition),
        "why": unknown_sink(sink, incident.partition),
    }
    return replace(incident, detail={**incident.detail, SINK: known})


def _coordinator(sink: Mapping[str, Any], group: str) -> str:
    coordinator = sink["coordinator"]
    name = coordinator_group(group)
    if not coordinator["is_live"] and None in coordinator["committed"].values():
        return f"group `{name}` is gone, and its coordinator begins at the end of {sink['control_topic']}"
    return f"group `{name}` is past them in {sink['control_topic']}"


def _files(files: Mapping[str, Any]) -> str:
    return f"{counted(files['records'], 'record')} in {counted(files['files'], 'file')}"


def _beyond(sink: Mapping[str, Any]) -> dict[str, int]:
    ends = {str(partition): end for partition, end in sink["control"].items()}
    offsets = {str(partition): offset for partition, offset in (sink["table"]["offsets"] or {}).items()}
    return {partition: offset for partition, offset in offsets.items() if offset > ends.get(partition, 0)}


def _by_partition(offsets: Mapping[Any, int | None]) -> str:
    """Return offsets by partition: `0: 17,600, 1: none`."""
    return ", ".join(_offset(partition, offset) for partition, offset in _sorted(offsets)) or "no offset"


def _offset(partition: int, offset: int | None) -> str:
    return f"{partition}: {'not known' if offset is None else f'{offset:,}'}"


def _sorted(offsets: Mapping[Any, int | None]) -> Iterator[tuple[int, int | None]]:
    yield from sorted((int(partition), offset) for partition, offset in offsets.items())
