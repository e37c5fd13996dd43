"""Refuse what a pipeline asks of tables whose kind cannot do it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from makewhole.kinds import tables_of
from makewhole.model.connection import Connection
from makewhole.model.errors import Problem
from makewhole.model.hops import FOR_ROWS, Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, can_look_up
from makewhole.tables.tables import Ability


def unfit_abilities(pipeline: Pipeline, connections: Mapping[str, Connection]) -> Iterator[Problem]:
    """Yield what the file asks of tables that their systems do not do."""
    for point in pipeline.ordered_points():
        if can_look_up(point):
            tables = tables_of(connections[point.connection])
            for ability, path, remedy in _asked(pipeline, point):
                if ability not in tables.abilities:
                    found = f"{point.table} (point {point.name}) is a table of {tables.system}, which cannot {ability}"
                    yield Problem(file="pipeline file", path=path, found=found, remedy=remedy)


def _asked(pipeline: Pipeline, point: TablePoint) -> Iterator[tuple[Ability, str, str]]:
    """Yield what a file asks of a table: the ability, the place in the file, and what to write there instead."""
    place = f"points.{point.name}"
    if point.kind is PointKind.LEDGER:
        yield Ability.LEDGER, f"{place}.kind", "Begin with another point, or name a table of PostgreSQL"
    if point.erased is not None and not point.erased.topics:
        yield Ability.ERASED, f"{place}.erased", "Name the topics whose tombstones say it, or take `erased` out"
    for hop in pipeline.hops_into(point.name):
        if hop.progress is not None:
            ability = Ability.FILE_PROGRESS if hop.progress.is_of_files else Ability.PROGRESS
            yield ability, f"hops {hop.name}.progress", "Name the consumer group of the hop instead"
        for verdict in _remedies_for_rows(hop):
            path = f"hops {hop.name}.compensation.{verdict}"
            yield Ability.REPAIRED, path, f"Write `{verdict}: report`"


def _remedies_for_rows(hop: Hop) -> Iterator[str]:
    """Yield the verdicts on which rows of the target are written, or moved aside."""
    for verdict in (item.name for item in fields(Remedies)):
        remedy: Remedy = getattr(hop.remedies, verdict)
        if remedy in FOR_ROWS:
            yield verdict
