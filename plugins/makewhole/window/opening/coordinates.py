"""Refuse a topic whose key is a coordinate of its records where a coordinate does not name one record for ever, and one
from which compaction takes what its newer records do not have: elements, whose own latest version is in an older one.
"""

from collections.abc import Iterable, Mapping

from makewhole.kafka.topics import describe_settings
from makewhole.model.connection import Connection, kafka_of
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Semantics
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import POSITION, TopicPoint, has_log, is_by_coordinates

_POLICY, _COMPACT = "cleanup.policy", "compact"
_USED_AGAIN = (IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED)


def require_lasting_coordinates(
    pipeline: Pipeline, connections: Mapping[str, Connection], incidents: Iterable[Incident]
) -> None:
    """Refuse a compacted topic where it may be none, and one whose offsets are given to other records, where they are
    its key. `incidents` are those of the window that is opened.

    Raises:
        RefusedError: rows would be compared with other records than theirs, or with none.
        TransientError: the brokers do not answer.
    """
    topics = [point for point in pipeline.ordered_points() if has_log(point)]
    of_key = {point.name: point for point in topics if is_by_coordinates(point.key)}
    for point in topics:
        if may_be_compacted(pipeline, point):
            continue
        policy = describe_settings(kafka_of(connections[point.connection]), point.topic).settings.get(_POLICY)
        if policy is not None and _COMPACT in (policy.value or ""):
            require_no_compaction(point, f"its {_POLICY} is {policy.value}")
    for incident in incidents:
        is_by_position = incident.point in of_key and set(of_key[incident.point].key) == set(POSITION)
        if is_by_position and incident.kind in _USED_AGAIN:
            raise RefusedError(
                f"{incident_sentence(incident)}. The key of {incident.point} is the position of its records, and the "
                "rows of those that are gone may be held to the ones that have their offsets now. Name a business key "
                "at the points, or give the pipeline another name and a `start:` after it happened: it begins a "
                "history of its own, and the rows from before are none of it"
            )


def may_be_compacted(pipeline: Pipeline, point: TopicPoint) -> bool:
    """Return whether what compaction leaves of a topic still says what its targets are to have."""
    hops = [hop for hop in pipeline.hops if point.name in (hop.source, hop.target)]
    takes_latest = point.explode is not None and any(hop.semantics is Semantics.UPSERT for hop in hops)
    is_grouped = any(hop.group is not None for hop in hops)
    return not takes_latest and not is_grouped and not is_by_coordinates(point.key)


def require_no_compaction(point: TopicPoint, why: str) -> None:
    """Refuse a topic from which compaction takes records whose rows stay: they would be unexpected.

    Raises:
        RefusedError: always; `why` says by what this is known.
    """
    if point.explode is not None:
        raise RefusedError(
            f"{point.topic} (point {point.name}) is compacted ({why}), and the latest version of an element may be in "
            "a record that compaction took away, as newer ones of its record key need not have the element. Take "
            "'explode' out and compare whole records, or take 'compact' out of its cleanup.policy and begin with a "
            "`start:` after that"
        )
    if not is_by_coordinates(point.key):
        raise RefusedError(
            f"{point.topic} (point {point.name}) is compacted ({why}), and a hop with 'group' adds up all records of a "
            "key, of which compaction leaves the last. Take 'compact' out of its cleanup.policy and begin with a topic "
            "that has all records, or take the hop out"
        )
    raise RefusedError(
        f"{point.topic} (point {point.name}) is compacted ({why}), and the key of the point is a coordinate of its "
        "records: of one that compaction took away no record says that its row belongs there. Name a business key at "
        "the points"
    )
