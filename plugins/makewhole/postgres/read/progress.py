"""Read how far a sink has come, from the table in which it keeps that itself."""

from collections.abc import Iterable, Sequence

from psycopg2 import sql

from makewhole.config.hops.where import Operator, WhereTerm, parse_where
from makewhole.model.connection import PostgresConnection
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import regclass_text, table_identifier
from makewhole.postgres.table import InParameters, quoted
from makewhole.sql import PgConnection, named_rows, record
from makewhole.tables.progress import ProgressRows, progress_table

_ROWS = """
select t.{partition}::bigint as partition, count(*) as rows, count(t.{offset}) as offsets,
    min(t.{offset})::text as least, max(t.{offset})::text as greatest
from {table} t where t.{partition} = any(%s::bigint[]) and {condition} group by 1
"""

_MAY_READ = """
select coalesce(bool_and(has_column_privilege(attrelid, attnum, 'select')), true) from pg_attribute
where attrelid = to_regclass(%s) and attname = any(%s) and not attisdropped
"""


def may_read(session: PgConnection, table: TablePoint, columns: Iterable[str]) -> bool:
    """Return whether the session's user may read these columns of a table, as far as they exist."""
    with session.cursor() as cursor:
        cursor.execute(_MAY_READ, (regclass_text(table), list(columns)))
        ((is_allowed,),) = cursor.fetchall()
    return bool(is_allowed)


def read_progress_rows(
    connection: PostgresConnection, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
) -> dict[int, ProgressRows]:
    """Return what a sink's own progress has of some partitions of a topic, by one statement: it is of one moment.
    Partitions without a row are left out.

    Raises:
        TransientError: the server does not answer.
        PermanentError: it refuses the statement: the table is not what it was when a window was opened.
    """
    point = progress_table(progress, store)
    statement = sql.SQL(_ROWS).format(
        partition=quoted(progress.partition),
        offset=quoted(progress.offset),
        table=InParameters(table_identifier(point)),
        condition=InParameters(_condition(progress, topic)),
    )
    purpose = f"reading the progress of what loads {store.name} ({progress.text})"
    with connect(connection, purpose) as session:
        session.set_session(readonly=True)
        with session.cursor() as cursor:
            cursor.execute(statement, (sorted(partitions),))
            return {row.partition: record(ProgressRows, row) for row in named_rows(cursor)}


def _condition(progress: SinkProgress, topic: str) -> sql.Composable:
    terms = [] if progress.topic is None else [WhereTerm(column=progress.topic, literals=(topic,))]
    terms += parse_where(progress.where) if progress.where else ()
    return sql.SQL(" and ").join([sql.SQL("true"), *(_holds(term) for term in terms)])


def _holds(term: WhereTerm) -> sql.Composable:
    """Return the condition of a term: texts are compared as texts, whatever type of text the column is."""
    column = sql.SQL("t.{}").format(sql.Identifier(term.column))
    if not term.literals:
        return sql.SQL("{} {}").format(column, sql.SQL(term.operator))
    compared = sql.SQL('{}::text collate "C"').format(column) if isinstance(term.literals[0], str) else column
    literals = sql.SQL(", ").join(map(sql.Literal, term.literals))
    is_list = term.operator in (Operator.IN, Operator.NOT_IN)
    return sql.SQL("{} {} ({})" if is_list else "{} {} {}").format(compared, sql.SQL(term.operator), literals)
