"""Read the types and the identities of the columns that a pipeline's keys stand in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.compute.key_layout import KeyColumns
from makewhole.compute.same_key import ColumnIds
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.pipeline import Pipeline, TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import TableShape, column_types, regclass_text
from makewhole.postgres.read.identities import TableIdentity, identity_texts, read_identity, read_server
from makewhole.sql import PgConnection, load_queries


@dataclass(frozen=True, kw_only=True)
class KeyColumnsRead:
    """The key columns of tables: their types, and what the catalogue knows them by. `places`: what each table is."""

    types: KeyColumns
    ids: ColumnIds
    places: Mapping[str, str] = field(default_factory=dict)


def read_key_columns(pipeline: Pipeline, connections: Mapping[str, Connection]) -> KeyColumnsRead:
    """Return the key columns of every table on a hop, with one session a connection.

    Raises:
        ConfigurationError: a table or a column of a key does not exist.
        TransientError: a database does not answer.
    """
    tables: dict[str, list[TablePoint]] = {}
    for point in pipeline.ordered_points():
        if isinstance(point, TablePoint):
            tables.setdefault(point.connection, []).append(point)
    found: dict[str, tuple[str, ...]] = {}
    ids: dict[str, Mapping[str, str]] = {}
    places: dict[str, TableIdentity] = {}
    for name, points in tables.items():
        connection = connections[name]
        assert isinstance(connection, PostgresConnection)
        with connect(connection) as session:
            server = read_server(session)
            for point in points:
                types = column_types(session, TableShape(point=point, compare={}, filters={}))
                found[point.name] = tuple(types[column] for column in point.key)
                ids[point.name] = _column_ids(session, point)
                places[point.name] = read_identity(session, server, point)
    return KeyColumnsRead(types=found, ids=ids, places=identity_texts(places))


def _column_ids(session: PgConnection, point: TablePoint) -> dict[str, str]:
    with session.cursor() as cursor:
        cursor.execute(
            load_queries("target")["column_ids"], {"table": regclass_text(point), "columns": list(point.key)}
        )
        return dict(cursor.fetchall())
