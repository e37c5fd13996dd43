"""Ask the catalogue whether a session's user may do what repairs do with a table."""

from collections.abc import Collection, Iterator

from makewhole.model.errors import RefusedError
from makewhole.model.points import TablePoint
from makewhole.postgres.table import describe_table, quoted
from makewhole.sql import PgConnection

_MISSING = """
select right_name from unnest(%(rights)s::text[]) as needed (right_name)
where not case when right_name = 'delete' then has_table_privilege(%(table)s::oid, right_name)
    else has_any_column_privilege(%(table)s::oid, right_name) end
"""
_MAY_KEEP_RECEIPTS = """
select case when to_regnamespace('makewhole') is null then has_database_privilege(current_database(), 'create')
    when not has_schema_privilege('makewhole', 'usage') then false
    when to_regclass('makewhole.receipt') is null then has_schema_privilege('makewhole', 'create')
    else has_table_privilege('makewhole.receipt', 'insert') end
"""


def missing_to_write(session: PgConnection, point: TablePoint, acts: Collection[str]) -> tuple[str, ...]:
    """Return the statements that grant the session's user what it lacks to do these acts (`insert`, `update`, `delete`)
    with rows of a table, and to keep its receipts in the same database; none of what is no table, or of no acts."""
    if not acts:
        return ()
    try:
        table = describe_table(session, point)
    except RefusedError:
        return ()
    with session.cursor() as cursor:
        cursor.execute(_MISSING, {"rights": sorted(acts), "table": table.oid})
        missing = [right for (right,) in cursor.fetchall()]
        cursor.execute(_MAY_KEEP_RECEIPTS)
        ((may_keep_receipts,),) = cursor.fetchall()
    name = quoted(table.schema, table.name).as_string(session)
    return tuple(_statements(name, session.info.user, missing, bool(may_keep_receipts)))


def _statements(table: str, user: str, missing: Collection[str], may_keep_receipts: bool) -> Iterator[str]:
    if missing:
        yield f"grant {', '.join(missing)} on {table} to {user}"
    if not may_keep_receipts:
        yield "psql -f sql/grants/store_schema.sql, then -f sql/grants/store_writer.sql (docs/rights.md)"
