"""Check what a topic cannot have whose key is the position of its records, or their producer's sequence.

A record that is sent again, or copied to another topic, has other ones: it is another key, and makes no key whole.
"""

from collections.abc import Sequence

from makewhole.config.hops.redelivery import Drafts
from makewhole.config.tree import YamlPlace
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import POSITION, SEQUENCE, PointKind

_WHOLE_KEYS = (frozenset(POSITION), frozenset(SEQUENCE))


def note_parts_of_coordinates(drafts: Drafts) -> None:
    """Note a key of some coordinates that does not identify a record, or of coordinates and contents."""
    for name, draft in drafts.items():
        if draft.is_by_coordinates and draft.key is not None and frozenset(draft.key.names) not in _WHOLE_KEYS:
            draft.key.place.complain(
                f"{', '.join(draft.key.names)} is neither where a record of {name} lies nor how it is numbered",
                f"Write 'key: position' ({', '.join(POSITION)}), 'key: sequence' ({', '.join(SEQUENCE)}), these parts "
                "in another order, or no part of them",
            )


def note_coordinates(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    """Note hops on which a key by coordinates could not be judged."""
    for place, hop in hops:
        source, target = drafts[hop.source], drafts[hop.target]
        if source.kind is PointKind.TOPIC and target.is_by_coordinates:
            place.complain(
                f"no record of {hop.source} has its coordinates in {hop.target}: it gets them there",
                f"Give {hop.target} the key that its records carry of {hop.source}, for example headers with the "
                "partition and the offset that they were copied from",
            )
        elif hop.semantics is Semantics.UPSERT and (source.is_by_coordinates or target.is_by_coordinates):
            topic = hop.source if source.is_by_coordinates else hop.target
            place.complain(
                f"'semantics: upsert' orders the versions of a key, and each key of {topic} is one record",
                "Take 'semantics' out, or name a business key at the points",
            )
    _note_one_table(hops, drafts)


def _note_one_table(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    """Note a table that two topics fill by coordinates, which are the same in both."""
    first: dict[str, Hop] = {}
    for place, hop in hops:
        point = drafts[hop.target].point
        if not drafts[hop.source].is_by_coordinates or point is None:
            continue
        other = first.setdefault(point.place, hop)
        if other.source != hop.source:
            place.complain(
                f"{other.source} and {hop.source} fill one table by coordinates, which are the same in both",
                "Let each topic fill a table of its own, or name a business key at the points",
            )


def note_written_coordinates(names: Sequence[str | None], place: YamlPlace, drafts: Drafts) -> None:
    """Note topics that remedies write to, and whose records would not be known by their keys."""
    for name in names:
        if name is not None and name in drafts and drafts[name].is_by_coordinates:
            place.complain(
                f"what is written to {name} gets its coordinates, by which its records are known, from the broker",
                f"Name a business key at {name}, or write to another topic",
            )
