"""Refuse points that have rows in common under two names: a table and a partition, a child or a view of it."""

from collections.abc import Iterable, Iterator

from makewhole.model.errors import Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.points import can_look_up
from makewhole.tables.identities import PointPair


def shared_rows(pipeline: Pipeline, sharing: Iterable[PointPair]) -> Iterator[Problem]:
    """Yield the pairs of points with which rows would be held to sources that are not theirs; the points know their
    places. Stores that the same sources fill are no such pair, nor are two ledgers."""
    filled = {hop.target for hop in pipeline.hops}
    for point, other in sharing:
        if _is_behind(pipeline, point, other) or _is_behind(pipeline, other, point):
            yield _problem(
                pipeline,
                (point, other),
                "hops lead from one to the other, which would be compared with itself",
                "Take one of the hops between them out",
            )
        elif {point, other} <= filled and _sources(pipeline, point) != _sources(pipeline, other):
            yield _problem(
                pipeline,
                (point, other),
                "other sources fill them: rows that one source brings would be unexpected at the other point",
                "Name the same table at both, or reconcile one of them in a pipeline of its own, without `unexpected`",
            )


def compared_otherwise(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield the hops into one place that compare different columns; the points know their places."""
    for hop in pipeline.hops:
        first = pipeline.hops_into(hop.target)[0]
        own, of_first = (list(compared_on(pipeline, compared_hop).items()) for compared_hop in (hop, first))
        if own != of_first:
            yield Problem(
                file="pipeline file",
                path=f"hops {hop.name}.compare",
                found=f"{first.name} and {hop.name} lead into one place and compare different columns, and each row "
                "there is held to all its sources",
                remedy="Compare the same columns, in the same order, on both",
            )


def _is_behind(pipeline: Pipeline, start: str, end: str) -> bool:
    return any(end in pipeline.from_here_on(hop.target) for hop in pipeline.readers_of(start))


def _sources(pipeline: Pipeline, target: str) -> set[str]:
    return {pipeline.place_of(hop.source) for hop in pipeline.hops_into(target)}


def _problem(pipeline: Pipeline, pair: PointPair, why: str, remedy: str) -> Problem:
    points = [point for point in map(pipeline.points.__getitem__, pair) if can_look_up(point)]
    named = " and ".join(f"{point.table} (point {point.name})" for point in points)
    return Problem(
        file="pipeline file",
        path=f"points.{pair[1]}.table",
        found=f"{named} have rows in common (one is a partition, a child or a view of the other), and {why}",
        remedy=remedy,
    )
