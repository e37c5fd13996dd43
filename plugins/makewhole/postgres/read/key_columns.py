"""Read the types of the columns that a pipeline's keys stand in."""

from collections.abc import Mapping

from makewhole.compute.key_layout import KeyColumns
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.pipeline import Pipeline, TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import TableShape, column_types


def read_key_columns(pipeline: Pipeline, connections: Mapping[str, Connection]) -> KeyColumns:
    """Return the types of the key columns of every table on a hop, with one session a connection.

    Raises:
        ConfigurationError: a table or a column of a key does not exist.
        TransientError: a database does not answer.
    """
    tables: dict[str, list[TablePoint]] = {}
    for point in pipeline.ordered_points():
        if isinstance(point, TablePoint):
            tables.setdefault(point.connection, []).append(point)
    found: dict[str, tuple[str, ...]] = {}
    for name, points in tables.items():
        connection = connections[name]
        assert isinstance(connection, PostgresConnection)
        with connect(connection) as session:
            for point in points:
                types = column_types(session, TableShape(point=point, compare={}, filters={}))
                found[point.name] = tuple(types[column] for column in point.key)
    return found
