"""Find the topics from which compaction may take the only record of a business key: those with another Kafka key."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from makewhole.compute.decode.unread_keys import ComparedKeys, is_compacted_by_key, may_take_other_keys
from makewhole.kafka.topics import describe_settings
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TopicPoint, has_log, is_by_coordinates
from makewhole.window.context import WindowContext

COMPARED_KEYS = "compared_keys"
"""The entry of a topic's manifest that says in how many records the Kafka key has the business key, and in how many it
does not. It has those of windows before, where there are few in its own."""
_POLICY, _COMPACT = "cleanup.policy", "compact"
_ENOUGH = 100


def compares_keys(context: WindowContext, point: TopicPoint) -> bool:
    """Return whether the Kafka keys of a topic are compared with its business keys: it is, or may be, compacted, and
    its records alone show by which key.

    Raises:
        TransientError: the brokers do not answer.
    """
    if point.explode is not None or is_by_coordinates(point.key) or is_compacted_by_key(point.key):
        return False
    policy = describe_settings(context.kafka(point), point.topic).settings.get(_POLICY)
    return policy is None or _COMPACT in (policy.value or "")


def compared_entry(compared: Iterable[ComparedKeys | None], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a manifest for what the pieces of a topic compared, of which an idle one has none: it has the
    numbers of the window before, whose manifest is `before`."""
    own = sum((keys for keys in compared if keys is not None), ComparedKeys())
    return {COMPARED_KEYS: asdict(with_those_before(own, compared_keys(before)))}


def compared_keys(manifest: Mapping[str, Any]) -> ComparedKeys | None:
    """Return what a manifest says of the keys of a topic; None: they were not compared."""
    entry = manifest.get(COMPARED_KEYS)
    return None if entry is None else ComparedKeys(**entry)


def compared_in(manifests: Iterable[Mapping[str, Any]]) -> ComparedKeys | None:
    """Return the sum of what manifests say of the keys of a topic; None: they were not compared in any of them."""
    known = [keys for keys in map(compared_keys, manifests) if keys is not None]
    return sum(known, ComparedKeys()) if known else None


def with_those_before(keys: ComparedKeys, before: ComparedKeys | None) -> ComparedKeys:
    """Return keys with those of before, where they are few: some may be like each other by chance."""
    is_few = keys.same + keys.others < _ENOUGH
    return keys + before if is_few and before is not None else keys


def is_compacted(manifest: Mapping[str, Any]) -> bool:
    """Return whether compaction took records from a snapshot before it was taken."""
    return bool((manifest.get("accounting") or {}).get("compacted", 0))


def lacks_compacted(
    pipeline: Pipeline, point: str, manifest: Mapping[str, Any], around: ComparedKeys | None = None
) -> bool:
    """Return whether compaction took records from a snapshot of a topic that may have been the only ones of their
    business key. `around`: the numbers of all that was read of the topic around it; records with another Kafka key
    there may have been among those that are gone here."""
    topic = pipeline.points[point]
    keys = around if around is not None and around.others else compared_keys(manifest)
    return is_compacted(manifest) and has_log(topic) and may_take_other_keys(topic, keys)
