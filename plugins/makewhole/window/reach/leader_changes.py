"""Find why a change of leader may have taken acknowledged records along: for topics that nothing upstream vouches for.

A clean election keeps what all replicas in sync have. It loses nothing that was acknowledged where a record is
acknowledged only once two replicas have it (`acks=all`, `min.insync.replicas` of 2 or more) and no replica that lags
may lead. Only producers with an id are known to send with `acks=all`: idempotence demands it (KIP-98). Their numbering
shows the records that are gone from its middle. The settings are those of the moment of the snapshot.
"""

from collections.abc import Iterable, Mapping

from makewhole.kafka.topics import TopicDescription
from makewhole.model.incident import Doubt, Incident

_MIN_IN_SYNC = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"
_COPIES = 2
_OF_SETTINGS = (Doubt.FEW_COPIES, Doubt.UNCLEAN_ELECTION)


def doubts_of_settings(described: TopicDescription) -> dict[str, int]:
    """Return what in a topic's settings lets a change of leader lose acknowledged records; empty: nothing."""
    values = {name: setting.value for name, setting in described.settings.items()}
    in_sync, unclean = values.get(_MIN_IN_SYNC), values.get(_UNCLEAN)
    if in_sync is None or unclean is None:
        return {Doubt.SETTINGS_UNKNOWN.value: 1}
    copies = min(int(in_sync), min((len(partition.replicas) for partition in described.partitions), default=0))
    doubts: Mapping[Doubt, bool] = {
        Doubt.FEW_COPIES: copies < _COPIES,
        Doubt.UNCLEAN_ELECTION: unclean == "true",
    }
    return {doubt.value: 1 for doubt, holds in doubts.items() if holds}


def with_earlier(doubts: Mapping[str, int], incident: Incident, earlier: Iterable[Incident]) -> dict[str, int]:
    """Add the doubts that earlier revisions of the window had of the settings: a topic that was made safe since was not
    safe when its leader changed."""
    before = {
        doubt.value: count
        for other in earlier
        if (other.kind, other.point, other.topic_id, other.partition)
        == (incident.kind, incident.point, incident.topic_id, incident.partition)
        for doubt, count in other.doubts.items()
        if doubt in _OF_SETTINGS
    }
    return before | dict(doubts)


def doubts_of_records(*, unnumbered: int, breaks: int) -> dict[str, int]:
    """Return what in the records lets a change of leader lose acknowledged ones; empty: nothing.

    `unnumbered`: how many carry no producer id; `breaks`: places where the numbering of a producer has a gap.
    """
    counts = {Doubt.ACKS_UNKNOWN: unnumbered, Doubt.NUMBERS_MISSING: breaks}
    return {doubt.value: count for doubt, count in counts.items() if count > 0}
