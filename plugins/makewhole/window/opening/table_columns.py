"""Read the columns of a pipeline's tables, as the systems that keep them say."""

from collections.abc import Mapping

from makewhole.kinds import tables_of
from makewhole.model.connection import Connection
from makewhole.model.errors import Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up
from makewhole.tables.columns import ColumnsRead, TableColumns
from makewhole.tables.identities import identity_texts, sharing_points
from makewhole.tables.shape import TableShape
from makewhole.window.context import table_shape


def read_columns(pipeline: Pipeline, connections: Mapping[str, Connection]) -> ColumnsRead:
    """Return the columns of every table on a hop.

    Raises:
        TransientError: a system does not answer.
    """
    shapes: dict[str, list[TableShape]] = {}
    for point in pipeline.ordered_points():
        if can_look_up(point):
            shapes.setdefault(point.connection, []).append(table_shape(pipeline, point))
    described: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for name, of_connection in shapes.items():
        columns, of_tables = tables_of(connections[name]).describe_columns(of_connection)
        described |= columns
        problems += of_tables
    identities = {name: table.identity for name, table in described.items()}
    return ColumnsRead(
        types={name: table.types for name, table in described.items()},
        ids={name: table.ids for name, table in described.items()},
        kinds={name: table.kinds for name, table in described.items()},
        relations={name: table.relation for name, table in described.items()},
        places=identity_texts(identities),
        sharing=sharing_points(identities, {name: pipeline.points[name].key_places for name in identities}),
        problems=problems,
    )
