"""Find tables that are gone, were renamed or were replaced since the windows before read them."""

from collections.abc import Mapping

from makewhole.journal import windows
from makewhole.journal.results import snapshot_manifests
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.sql import PgConnection
from makewhole.window.context import table_shape


def changed_tables(
    journal: PgConnection, pipeline: Pipeline, connections: Mapping[str, Connection]
) -> dict[str, Problem]:
    """Return what became of tables, by point, that are not those which the newest compared window read.

    Raises:
        TransientError: a system does not answer.
    """
    last = windows.last_judged(journal, pipeline.name)
    if last is None:
        return {}
    manifests = snapshot_manifests.snapshots(journal, last)
    problems: dict[str, Problem] = {}
    for point in pipeline.ordered_points():
        seen = manifests.get(point.name, {}).get("pg_snapshot")
        if can_look_up(point) and seen is not None and point.connection in connections:
            tables = tables_of(connections[point.connection])
            problem = tables.changed_since(table_shape(pipeline, point), seen)
            problems |= {} if problem is None else {point.name: problem}
    return problems


def require_same_tables(journal: PgConnection, pipeline: Pipeline, connections: Mapping[str, Connection]) -> None:
    """Refuse a window while a table is not the one that the windows before read.

    Raises:
        ConfigurationError: with what became of each.
        TransientError: a system does not answer.
    """
    if changed := changed_tables(journal, pipeline, connections):
        raise ConfigurationError([*changed.values()])
