"""Find tables that have a `version` that is none, or that is not ordered with those on the other side."""

from collections.abc import Iterator, Mapping

from makewhole.compute.value_types import Kinds
from makewhole.model.errors import Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, can_look_up
from makewhole.tables.version_types import is_moment_type, is_version_type


def unfit_versions(pipeline: Pipeline, kinds: Kinds) -> list[Problem]:
    """Return what is wrong with the columns that tables name as their version: those of another type, and all that hops
    join although one side counts and the other has moments. `kinds`: the columns of the tables."""
    versioned = [point for point in pipeline.ordered_points() if can_look_up(point) and point.version is not None]
    types = {point.name: kinds[point.name][point.version or ""].type for point in versioned}
    return [*_of_other_types(versioned, types), *_not_ordered(pipeline, types)]


def _of_other_types(points: list[TablePoint], types: Mapping[str, str]) -> Iterator[Problem]:
    for point in points:
        if not is_version_type(types[point.name]):
            yield _problem(
                point.name,
                f"{point.table}.{point.version_place} (point {point.name}) is of type {types[point.name]}, "
                "which is no version",
                "Name a column of type bigint, integer, numeric, timestamptz, timestamp or date",
            )


def _not_ordered(pipeline: Pipeline, types: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the tables of versions that are joined, over topics too, to one with versions of the other kind."""
    kinds = {name: is_moment_type(kind) for name, kind in types.items() if is_version_type(kind)}
    for names in _joined(pipeline):
        known = sorted(names & kinds.keys())
        others = [name for name in known if kinds[name] != kinds[known[0]]]
        for name in others:
            yield _problem(
                name,
                f"its versions ({types[name]}) are not ordered with those of {known[0]} ({types[known[0]]})",
                "Name the same version on both sides: numbers, or moments",
            )


def _joined(pipeline: Pipeline) -> list[set[str]]:
    """Return the points that hops join, directly or over others."""
    parts: list[set[str]] = []
    for hop in pipeline.hops:
        touched = [part for part in parts if part & {hop.source, hop.target}]
        parts = [part for part in parts if part not in touched]
        parts.append({hop.source, hop.target}.union(*touched))
    return parts


def _problem(point: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point}.version", found=found, remedy=remedy)
