"""Refuse a window whose tables have a `version` that is none, or that is not ordered with those on the other side."""

from collections.abc import Iterator, Mapping

from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline, TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import TableShape, column_types
from makewhole.postgres.version_columns import is_moment_type, is_version_type


def require_version_columns(pipeline: Pipeline, connections: Mapping[str, Connection]) -> None:
    """Check the column of every table that a point names as its version.

    Raises:
        ConfigurationError: with every column of another type, and all that hops join although one side counts and the
            other has moments; or a table or a column does not exist.
        TransientError: a database does not answer.
    """
    found: dict[str, str] = {}
    versioned = [one for one in pipeline.ordered_points() if isinstance(one, TablePoint) and one.version is not None]
    for name in sorted({point.connection for point in versioned}):
        connection = connections[name]
        assert isinstance(connection, PostgresConnection)
        with connect(connection) as session:
            for point in (one for one in versioned if one.connection == name):
                types = column_types(session, TableShape(point=point, compare={}, filters={}))
                found[point.name] = types[point.version or ""]
    problems = [*_of_other_types(versioned, found), *_not_ordered(pipeline, found)]
    if problems:
        raise ConfigurationError(problems)


def _of_other_types(points: list[TablePoint], types: Mapping[str, str]) -> Iterator[Problem]:
    for point in points:
        if not is_version_type(types[point.name]):
            yield _problem(
                point.name,
                f"{point.version} of {point.table} is of type {types[point.name]}, which orders no versions",
                "Name a column of integers, numerics, timestamps or dates, or change its type "
                f"(`alter table {point.table} alter {point.version} type bigint using {point.version}::bigint`)",
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
