"""Find the columns of nested Arrow rows by their names, with a dot before each part of a column."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.datasets.arrow_types import ColumnType, NestedColumn


def leaf_types(schema: pa.Schema) -> dict[str, ColumnType]:
    """Return the types of all columns by name, in order; of a column of parts those of its parts."""
    return dict(leaf for field in schema for leaf in _leaves(field.name, field.type))


def _leaves(name: str, kind: ColumnType) -> Iterator[tuple[str, ColumnType]]:
    if not pa.types.is_struct(kind) or not kind.num_fields:
        yield name, kind
        return
    for part in kind:
        yield from _leaves(f"{name}.{part.name}", part.type)


def all_types(schema: pa.Schema) -> dict[str, ColumnType]:
    """Return the types of all columns by name, those of columns of parts among them."""
    return dict(column for field in schema for column in _columns(field.name, field.type))


def _columns(name: str, kind: ColumnType) -> Iterator[tuple[str, ColumnType]]:
    yield name, kind
    for part in kind if pa.types.is_struct(kind) else ():
        yield from _columns(f"{name}.{part.name}", part.type)


def top_column(schema: pa.Schema, name: str) -> str:
    """Return the column of a schema in which a column lies: itself, or the one that it is a part of.

    Raises:
        KeyError: there is none.
    """
    return steps_to(schema, name)[0]


def column_at(rows: pa.Table, name: str) -> NestedColumn:
    """Return a column of rows, or a part of one: null where what it is a part of is null, or has no such part in the
    file of the rows.

    Raises:
        KeyError: there is none.
    """
    try:
        first, *parts = steps_to(rows.schema, name)
    except KeyError:
        if not _is_part_of_one(rows.schema, name):
            raise
        return pa.nulls(len(rows))
    column = rows.column(first)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    for part in parts:
        array = pc.struct_field(array, part)
    return array


def _is_part_of_one(schema: pa.Schema, name: str) -> bool:
    return any(name.startswith(f"{top.name}.") and pa.types.is_struct(top.type) for top in schema)


def with_parts_of(kind: ColumnType, other: ColumnType) -> ColumnType:
    """Return the type of a column with the parts besides that another one has."""
    if not (pa.types.is_struct(kind) and pa.types.is_struct(other)):
        return kind
    known, more = {part.name: part for part in kind}, {part.name: part for part in other}
    both = [
        part.with_type(with_parts_of(part.type, more[name].type)) if name in more else part.with_nullable(True)
        for name, part in known.items()
    ]
    return pa.struct([*both, *(part.with_nullable(True) for name, part in more.items() if name not in known)])


def steps_to(schema: pa.Schema, name: str) -> Sequence[str]:
    """Return the names from a top column down. A column whose own name has dots in it comes before a part.

    Raises:
        KeyError: there is none.
    """
    for top in sorted((head for head in schema.names if name == head or name.startswith(f"{head}.")), key=len)[::-1]:
        parts = _parts(schema.field(top).type, name.removeprefix(top).removeprefix("."))
        if parts is not None:
            return [top, *parts]
    raise KeyError(name)


def _parts(kind: ColumnType, rest: str) -> list[str] | None:
    if not rest:
        return []
    for part in kind if pa.types.is_struct(kind) else ():
        if rest == part.name or rest.startswith(f"{part.name}."):
            further = _parts(part.type, rest.removeprefix(part.name).removeprefix("."))
            if further is not None:
                return [part.name, *further]
    return None
