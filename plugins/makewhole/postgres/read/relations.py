"""Name what a statement reads the rows of a point from: a table, or a view, whose rows have no place of their own."""

from psycopg2 import sql

from makewhole.model.points import TablePoint
from makewhole.postgres.read.expressions import regclass_text, table_identifier
from makewhole.sql import PgConnection, statements_of

_run = statements_of("export")

WITHOUT_PLACES = ("v", "f")
"""Kinds of relations whose rows have no ctid and no xmin of their own: views, and foreign tables."""


def relation_kind(session: PgConnection, point: TablePoint) -> str:
    """Return what the catalogue says that a point's table is; empty where there is none."""
    return "".join(kind for (kind,) in _run(session, "relation_kind", table=regclass_text(point)))


def has_places(session: PgConnection, point: TablePoint) -> bool:
    """Return whether the rows of a point's table have places: those of a view have none."""
    return relation_kind(session, point) not in WITHOUT_PLACES


def rows_of(session: PgConnection, point: TablePoint) -> sql.Composable:
    """Return the item of a `from` that has the rows of a point as `t`, with the system columns that are asked for.

    Of a view these are made: the place of a row is a digest of the whole row, and of equal rows their number; when it
    was written is not known, so that it is certainly visible in no snapshot. The key and the time are in the partition
    of the window function, so that conditions on them reach the view's own tables.
    """
    if has_places(session, point):
        return sql.SQL("{} t").format(table_identifier(point))
    parts = [sql.SQL("v.{}").format(sql.Identifier(name)) for name in (*point.key, point.time) if name is not None]
    whole = sql.SQL("(v.*)::text")
    statement = (
        "(select v.*, {relation}::regclass::oid as tableoid,"
        " '(' || md5({whole}) || ',' || row_number() over (partition by {parts}) || ')' as ctid,"
        " ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint) & 4294967295) as xmin"
        " from {table} v) t"
    )
    return sql.SQL(statement).format(
        relation=sql.Literal(regclass_text(point)),
        whole=whole,
        parts=sql.SQL(", ").join([*parts, whole]),
        table=table_identifier(point),
    )
