"""Describe the columns of Iceberg tables, and what each table is."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from makewhole.datasets.column_types import column_kinds, described_column, sql_type
from makewhole.datasets.iceberg.catalog import NoTableError, load_table, table_with
from makewhole.datasets.iceberg.held_view import SnapshotView, require_table
from makewhole.datasets.items_of_chunks import filled_column
from makewhole.datasets.nested_columns import all_types, leaf_types
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.description import TableDescription
from makewhole.tables.identities import ServerIdentity, TableIdentity
from makewhole.tables.shape import TableShape

SYSTEM = "Iceberg"
_RESTORE = (
    "Restore it (`register_table` of a catalogue takes the newest of its metadata files, as long as these were not "
    "removed with it), or correct its name"
)


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return a schema as the rows that are read have it."""
    return schema_to_pyarrow(schema, include_field_ids=False)


def table_number(table: Table) -> int:
    """Return a number for a table, by what it is: one that is made again has another."""
    return int.from_bytes(hashlib.sha256(table.metadata.table_uuid.bytes).digest()[:4]) >> 1


def describe_columns(
    connection: IcebergConnection, shapes: Iterable[TableShape]
) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
    """Return the columns of tables by point, and the tables and columns that do not exist."""
    columns: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for shape in shapes:
        try:
            table = existing(connection, shape)
        except ConfigurationError as error:
            problems += error.problems
        else:
            columns[shape.point.name] = _columns(table, shape.point)
    return columns, problems


def existing(connection: IcebergConnection, shape: TableShape) -> Table:
    """Return the table of a shape.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the catalogue does not answer.
    """
    point = shape.point
    try:
        table = table_of(connection, point)
    except NoTableError as error:
        remedy = _RESTORE if point.identity else "Correct its name"
        raise ConfigurationError([_problem(point, "table", str(error), remedy)]) from None
    expected, now = "" if point.dataset is None else point.dataset.uuid, str(table.metadata.table_uuid)
    if expected and expected != now:
        found = f"{point.table} has the uuid {now}, and is not the table {expected} that the file names"
        raise ConfigurationError([_problem(point, "uuid", found, f"Put that one back, or write `uuid: {now}`")])
    known = all_types(arrow_schema(table.schema()))
    unknown = sorted(shape.column_names() - set(known))
    if unknown:
        listed = f"It has: {', '.join(sorted(known))}"
        raise ConfigurationError(
            [_problem(point, name, f"{point.table} has no column {name}", listed) for name in unknown]
        )
    return table


def table_of(connection: IcebergConnection, point: TablePoint) -> Table:
    """Return the table of a point as it is now; in a window the one that it was opened with.

    Raises:
        NoTableError: there is none.
        OtherTableError: another one has its name.
        TransientError: the catalogue does not answer.
    """
    table = load_table(connection, point.table)
    system, _, data = point.identity.partition(":")
    if system == SYSTEM:
        require_table(table, point.table, data.partition("/")[0])
    return table


def changed_since(connection: IcebergConnection, point: TablePoint, seen: str) -> Problem | None:
    """Return why a table is not the one that a window before read under the view `seen`; None: it is, or the file
    says that it is another one now."""
    before, table, now = SnapshotView.known(seen), None, ""
    if before is None:
        return None
    with suppress(NoTableError):
        table = load_table(connection, point.table)
        now = str(table.metadata.table_uuid)
    if now == before.uuid or (point.dataset is not None and now and now == point.dataset.uuid):
        return None
    other = table_with(connection, before.uuid)
    last = "it had no snapshot" if before.snapshot is None else f"its snapshot {before.snapshot} was read last"
    read = f"{before.uuid}{f', which is {other} now' if other else ''}: {last}"
    if table is None:
        gone = f"there is no table {point.table} in the catalogue of connection {connection.id} any more"
        remedy = f"Write `table: {other}`, or give it its former name back" if other else _RESTORE
        return _problem(point, "table", f"{gone}. The windows before read {read}", remedy)
    found = f"{point.table} is another table than the windows before read. Its uuid is {now}, and they read {read}"
    remedy = (
        f"Put that one back under its name; or, if it was replaced on purpose, write `uuid: {now}`: its rows are "
        "judged as they are then, and what it lacks is missing"
    )
    return _problem(point, "table", found, remedy)


def _problem(point: TablePoint, path: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point.name}.{path}", found=found, remedy=remedy)


def _columns(table: Table, point: TablePoint) -> TableColumns:
    types, number = all_types(arrow_schema(table.schema())), table_number(table)
    uuid = str(table.metadata.table_uuid)
    server = ServerIdentity(system=SYSTEM, data=uuid, started="", is_standby=False, database=0)
    return TableColumns(
        types=tuple(sql_type(types[name]) for name in point.key),
        ids={name: f"{uuid}.{name}" for name in point.key},
        kinds=column_kinds(types),
        relation="r",
        identity=TableIdentity(server=server, table=number, rows_in=frozenset({number}), is_row_by_row=True),
    )


def description_of(table: Table, point: TablePoint) -> TableDescription:
    """Return what is known of the table of a point. Its columns are the parts of those that have parts."""
    schema = table.schema()
    required = {schema.find_column_name(column.field_id) for column in schema.columns if column.required}
    names = leaf_types(arrow_schema(schema))
    columns = {
        name: described_column(name, kind, is_required=name in required, is_filled=name == filled_column(point))
        for name, kind in names.items()
    }
    *namespace, name = table.name()
    return TableDescription(schema=".".join(namespace), name=name, columns=columns)
