"""Find out what a table is, whatever the connection, the schema or the point is called that names it."""

from psycopg2 import errors as pg_errors

from makewhole.model.points import TablePoint
from makewhole.postgres.read.expressions import regclass_text
from makewhole.sql import PgConnection, load_queries
from makewhole.tables.identities import ServerIdentity, TableIdentity


def read_identity(session: PgConnection, server: ServerIdentity, point: TablePoint) -> TableIdentity:
    """Return what the table of a point is; the table exists."""
    with session.cursor() as cursor:
        cursor.execute(load_queries("target")["identity_of_table"], {"table": regclass_text(point)})
        [(table,)] = cursor.fetchall()
        cursor.execute(load_queries("target")["tables_of_rows"], {"table": regclass_text(point)})
        [(rows_in, is_row_by_row)] = cursor.fetchall()
    return TableIdentity(server=server, table=table, rows_in=frozenset(rows_in), is_row_by_row=is_row_by_row)


def read_server(session: PgConnection) -> ServerIdentity:
    """Return what the database of a session is."""
    queries = load_queries("target")
    with session.cursor() as cursor:
        cursor.execute("savepoint identity")
        try:
            cursor.execute(queries["identity_of_data"])
            [(data,)] = cursor.fetchall()
        except (pg_errors.InsufficientPrivilege, pg_errors.UndefinedFunction, pg_errors.FeatureNotSupported):
            data = None
        cursor.execute("rollback to savepoint identity")
        cursor.execute(queries["identity_of_server"])
        [(started, is_standby, database)] = cursor.fetchall()
    return ServerIdentity(system="postgresql", data=data, started=started, is_standby=is_standby, database=database)
