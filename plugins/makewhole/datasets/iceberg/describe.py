"""Describe the columns of Iceberg tables, and what each table is."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from makewhole.datasets.chunk_rows import filled_column
from makewhole.datasets.column_types import column_kinds, described_column, sql_type
from makewhole.datasets.iceberg.catalog import NoTableError, load_table
from makewhole.datasets.nested_columns import all_types, leaf_types
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.description import TableDescription
from makewhole.tables.identities import ServerIdentity, TableIdentity
from makewhole.tables.shape import TableShape

SYSTEM = "Iceberg"


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
    found: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for shape in shapes:
        try:
            table = existing(connection, shape)
        except ConfigurationError as error:
            problems += error.problems
        else:
            found[shape.point.name] = _columns(table, shape.point)
    return found, problems


def existing(connection: IcebergConnection, shape: TableShape) -> Table:
    """Return the table of a shape.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the catalogue does not answer.
    """
    point = shape.point
    try:
        table = load_table(connection, point.table)
    except NoTableError as error:
        raise ConfigurationError([_problem(point, "table", str(error), "Correct its name")]) from None
    known = all_types(arrow_schema(table.schema()))
    unknown = sorted(shape.column_names() - set(known))
    if unknown:
        listed = f"It has: {', '.join(sorted(known))}"
        raise ConfigurationError(
            [_problem(point, name, f"{point.table} has no column {name}", listed) for name in unknown]
        )
    return table


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
    required = {schema.find_column_name(one.field_id) for one in schema.columns if one.required}
    names = leaf_types(arrow_schema(schema))
    columns = {
        name: described_column(name, kind, is_required=name in required, is_filled=name == filled_column(point))
        for name, kind in names.items()
    }
    *namespace, name = table.name()
    return TableDescription(schema=".".join(namespace), name=name, columns=columns)
