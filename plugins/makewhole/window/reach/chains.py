"""Follow the hops of a pipeline from where events are first known to where they end, and find where each chain begins.

A chain that begins at a ledger is proven against what the producer says it sent; one that begins at a topic only from
what is in the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from makewhole.model.hops import Reach
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind


@dataclass(frozen=True, kw_only=True)
class PointChain:
    """Points joined by hops, from one that no hop leads into to one that none leads out of."""

    points: tuple[str, ...]
    reach: Reach


def point_chains(pipeline: Pipeline) -> list[PointChain]:
    """Return every chain of a pipeline, in the order of the file's hops."""
    return [
        PointChain(points=points, reach=_reach_of(pipeline, points[0]))
        for first in first_points(pipeline)
        for points in _onward(pipeline, (first,))
    ]


def first_points(pipeline: Pipeline) -> list[str]:
    """Return the points that no hop leads into, in the order of the file's hops; topics that none joins are last."""
    targets = {hop.target for hop in pipeline.hops}
    sources = [hop.source for hop in pipeline.hops if hop.source not in targets]
    return list(dict.fromkeys([*sources, *(point.name for point in pipeline.topics_alone)]))


def points_apart(pipeline: Pipeline, point: str) -> tuple[str, ...]:
    """Return the points that no hops join with one, in whichever direction; a place that has two names is one."""
    joined = {pipeline.place_of(point)}
    hops = [{pipeline.place_of(hop.source), pipeline.place_of(hop.target)} for hop in pipeline.hops]
    while more := {place for ends in hops if ends & joined for place in ends} - joined:
        joined |= more
    return tuple(sorted(name for name in pipeline.points if pipeline.place_of(name) not in joined))


def reach_of(pipeline: Pipeline) -> Reach:
    """Return the reach of a pipeline: that of its weakest chain."""
    return Reach.LOG if any(chain.reach is Reach.LOG for chain in point_chains(pipeline)) else Reach.LEDGER


def _onward(pipeline: Pipeline, points: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    following = [hop.target for hop in pipeline.hops_from(points[-1])]
    if not following:
        yield points
    for target in following:
        yield from _onward(pipeline, (*points, target))


def _reach_of(pipeline: Pipeline, first: str) -> Reach:
    point = pipeline.points.get(first)
    return Reach.LEDGER if point is not None and point.kind is PointKind.LEDGER else Reach.LOG
