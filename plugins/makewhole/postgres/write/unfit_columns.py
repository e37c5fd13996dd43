"""Find which columns of a table do not take the values of a row."""

import msgspec
import psycopg2

from makewhole.postgres.table import quoted
from makewhole.postgres.write.chunk import TableChunk
from makewhole.tables.items import UpsertRow


def unfit_columns(chunk: TableChunk, row: UpsertRow) -> list[str]:
    """Return the columns of a row that the server refused which cannot hold their values, in the order of the value.

    The server names the column of a constraint, and not that of a value which its type does not read. Each column is
    asked by itself; what is found wanting is taken back.
    """
    try:
        values = msgspec.json.decode(row.over_key, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return []
    named = {*row.columns, *row.key_columns} & chunk.table.columns.keys()
    return [name for name, text in values.items() if name in named and not _is_read(chunk, name, bytes(text))]


def _is_read(chunk: TableChunk, name: str, text: bytes) -> bool:
    value = b"{%b: %b}" % (msgspec.json.encode(name), text)
    with chunk.session.cursor() as cursor:
        cursor.execute("savepoint asked")
        try:
            chunk.run("row_as_inserted", {"key": "{}", "value": value.decode()}, values=quoted("wanted", name))
        except (psycopg2.DataError, psycopg2.IntegrityError):  # the latter: a domain does not take it
            cursor.execute("rollback to savepoint asked; release savepoint asked")
            return False
        cursor.execute("release savepoint asked")
    return True
