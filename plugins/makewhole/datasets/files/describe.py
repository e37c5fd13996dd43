"""Describe the columns of datasets of files, and what each dataset is."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from makewhole.datasets.column_types import column_kinds, described_column, sql_type
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.file_view import seen_number
from makewhole.datasets.items_of_chunks import filled_column
from makewhole.datasets.nested_columns import all_types, leaf_types
from makewhole.model.connection import Connection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.model.text import counted
from makewhole.tables.columns import TableColumns
from makewhole.tables.description import TableDescription
from makewhole.tables.identities import ServerIdentity, TableIdentity
from makewhole.tables.shape import TableShape

SYSTEM = "Parquet files"


def describe_columns(
    connection: Connection, shapes: Iterable[TableShape]
) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
    """Return the columns of datasets by point, and the datasets and columns that do not exist."""
    columns: dict[str, TableColumns] = {}
    problems: list[Problem] = []
    for shape in shapes:
        try:
            source = existing(connection, shape)
        except ConfigurationError as error:
            problems += error.problems
        else:
            columns[shape.point.name] = _columns(source, shape)
    return columns, problems


def existing(connection: Connection, shape: TableShape) -> FileSource:
    """Return the files of a shape.

    Raises:
        ConfigurationError: there are none, or they lack a column.
        UnreadableFileError: a file is no whole Parquet file.
        TransientError: the system does not answer.
    """
    point, source = shape.point, FileSource(connection, shape.point)
    schema = source.schema(sorted(shape.column_names()))
    if schema is None:
        raise ConfigurationError([_problem(point, "path", *_none_there(source))])
    known = all_types(schema)
    unknown = sorted(shape.column_names() - set(known))
    if unknown:
        listed = f"It has: {', '.join(sorted(known))}"
        raise ConfigurationError(
            [_problem(point, name, f"no file of {point.table} has a column {name}", listed) for name in unknown]
        )
    return source


def changed_since(connection: Connection, point: TablePoint, seen: str) -> Problem | None:
    """Return that no file of a dataset is left, of which the windows before had seen some; None: there is one.

    Raises:
        TransientError: the system does not answer.
    """
    number = seen_number(seen)
    source = FileSource(connection, point)
    if not number or source.listed.files:
        return None
    found, _ = _none_there(source)
    remedy = (
        "Bring its files back, or what the folder lies on; where it was moved, correct the path; where it was emptied "
        "on purpose, load a first file"
    )
    return _problem(point, "path", f"{found}. The last window had seen {counted(number, 'file')} there", remedy)


def _none_there(source: FileSource) -> tuple[str, str]:
    if source.listing.unreadable:
        number = len(source.listing.unreadable)
        return (
            f"{source.name} has no file that can be read, and {number} that cannot",
            "Have its writer write them again",
        )
    if source.listing.uncommitted:
        number = len(source.listing.uncommitted)
        return f"{source.name} has no committed file, and {number} that no marker commits", "Run it when one is there"
    return f"{source.name} has no file, and nothing says what its columns are", "Correct the path, or load a first file"


def _problem(point: TablePoint, path: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point.name}.{path}", found=found, remedy=remedy)


def _columns(source: FileSource, shape: TableShape) -> TableColumns:
    types, number = (
        all_types(source.schema(sorted(shape.column_names())) or pa.schema([])),
        source.number,
    )
    server = ServerIdentity(system=SYSTEM, data=source.store.root, started="", is_standby=False, database=0)
    return TableColumns(
        types=tuple(sql_type(types[name]) for name in shape.point.key),
        ids={name: f"{source.store.root}.{name}" for name in shape.point.key},
        kinds=column_kinds(types),
        relation="r",
        identity=TableIdentity(server=server, table=number, rows_in=frozenset({number}), is_row_by_row=True),
    )


def description_of(schema: pa.Schema, point: TablePoint) -> TableDescription:
    """Return what is known of a dataset. Its columns are the parts of those that have parts; parts are not written."""
    filled = filled_column(point)
    columns = {
        leaf: described_column(
            leaf,
            kind,
            is_required="." not in leaf and not schema.field(leaf).nullable,
            is_filled=leaf == filled and leaf in schema.names,
        )
        for leaf, kind in leaf_types(schema).items()
    }
    return TableDescription(schema="", name=point.table, columns=columns)
