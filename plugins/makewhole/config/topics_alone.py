"""Read which topics of a pipeline file are judged alone: those that no hop joins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from makewhole.config.tree import Section
from makewhole.model.hops import Hop
from makewhole.model.points import Point, has_log
from makewhole.model.verdict import Duplicates


def names_on_hops(top: Section) -> frozenset[str]:
    """Return the names of points that the hops of a file join, as far as they can be read; nothing is noted."""
    place = top.get_quietly("hops")
    hops = place.node.value if place is not None and isinstance(place.node, SequenceNode) else []
    return frozenset(
        str(value.value)
        for hop in hops
        if isinstance(hop, MappingNode)
        for key, value in hop.value
        if isinstance(value, ScalarNode) and key.value in ("from", "to")
    )


def with_topics_alone(points: Mapping[str, Point], hops: Sequence[Hop]) -> dict[str, Point]:
    """Return the points of a file; where it joins none of them, every topic reports the keys that have several
    records."""
    if hops:
        return dict(points)
    return {
        name: replace(point, duplicates=point.duplicates or Duplicates.REPORT) if has_log(point) else point
        for name, point in points.items()
    }
