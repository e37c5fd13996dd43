"""Read what the catalogue says of the columns of a pipeline: their types, and the identities of those of keys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from makewhole.compute.key_layout import KeyColumns
from makewhole.compute.same_key import ColumnIds
from makewhole.compute.value_types import ColumnKind, Kinds
from makewhole.model.connection import Connection, PostgresConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, can_look_up
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import TableShape, column_types, regclass_text
from makewhole.postgres.read.identities import (
    PointPair,
    TableIdentity,
    identity_texts,
    read_identity,
    read_server,
    sharing_points,
)
from makewhole.postgres.read.relations import relation_kind
from makewhole.sql import PgConnection, load_queries

ShapeOf = Callable[[TablePoint], TableShape]


@dataclass(frozen=True, kw_only=True)
class ColumnsRead:
    """The columns of tables: the types of those of keys, what the catalogue knows these by, and the kinds of all; what
    the catalogue says that each table is (`r` a table, `v` a view, …). `places`: what the place of each table is;
    `sharing`: each two points of which one is a partition, a child or a view of the other.

    `problems`: the tables and columns that do not exist; these tables are left out.
    """

    types: KeyColumns
    ids: ColumnIds
    kinds: Kinds
    relations: Mapping[str, str]
    places: Mapping[str, str] = field(default_factory=dict)
    sharing: tuple[PointPair, ...] = ()
    problems: list[Problem] = field(default_factory=list)


def read_columns(pipeline: Pipeline, connections: Mapping[str, Connection], shape_of: ShapeOf) -> ColumnsRead:
    """Return the columns of every table on a hop, with one session a connection; `shape_of` names those that the file
    uses.

    Raises:
        TransientError: a database does not answer.
    """
    tables: dict[str, list[TablePoint]] = {}
    for point in pipeline.ordered_points():
        if can_look_up(point):
            tables.setdefault(point.connection, []).append(point)
    types: dict[str, tuple[str, ...]] = {}
    ids: dict[str, Mapping[str, str]] = {}
    kinds: dict[str, Mapping[str, ColumnKind]] = {}
    relations: dict[str, str] = {}
    places: dict[str, TableIdentity] = {}
    problems: list[Problem] = []
    for name, points in tables.items():
        connection = connections[name]
        assert isinstance(connection, PostgresConnection)
        with connect(connection, "reading the columns of its tables") as session:
            server = read_server(session)
            for point in points:
                try:
                    known = column_types(session, shape_of(point))
                except ConfigurationError as error:
                    problems += error.problems
                    continue
                types[point.name] = tuple(known[column] for column in point.key)
                ids[point.name] = _column_ids(session, point)
                kinds[point.name] = column_kinds(session, point)
                relations[point.name] = relation_kind(session, point)
                places[point.name] = read_identity(session, server, point)
    return ColumnsRead(
        types=types,
        ids=ids,
        kinds=kinds,
        relations=relations,
        places=identity_texts(places),
        sharing=sharing_points(places, {name: pipeline.points[name].key for name in places}),
        problems=problems,
    )


def _column_ids(session: PgConnection, point: TablePoint) -> dict[str, str]:
    with session.cursor() as cursor:
        cursor.execute(
            load_queries("target")["column_ids"], {"table": regclass_text(point), "columns": list(point.key)}
        )
        return dict(cursor.fetchall())


def column_kinds(session: PgConnection, point: TablePoint) -> dict[str, ColumnKind]:
    """Return the kinds of a table's columns by name."""
    with session.cursor() as cursor:
        cursor.execute(load_queries("export")["column_kinds"], {"table": regclass_text(point)})
        return {
            name: ColumnKind.of(column_type, element=element, is_opaque=is_opaque, full_type=full_type)
            for name, column_type, full_type, element, is_opaque in cursor.fetchall()
        }
