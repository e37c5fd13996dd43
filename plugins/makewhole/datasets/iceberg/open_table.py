"""Read the rows of keys of an Iceberg table as it is now, as plans take them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyiceberg.table import Table

from makewhole.compute.value_types import ColumnKind
from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.column_types import column_kinds, sql_type
from makewhole.datasets.iceberg.catalog import NoTableError
from makewhole.datasets.iceberg.describe import arrow_schema, description_of, table_number, table_of
from makewhole.datasets.iceberg.predicates import of_keys
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.key_rows import KeyRow, among, in_order, key_rows, latest_first, rows_by_key
from makewhole.datasets.nested_columns import all_types
from makewhole.datasets.never_there import OpenDataset
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.rows import TableRow, ValuedRow


def require_columns(table: Table, point: TablePoint) -> None:
    """Check that a table has the columns that a point names.

    Raises:
        RefusedError: it lacks one.
    """
    absent = sorted(point.named_columns - set(all_types(arrow_schema(table.schema()))))
    if absent:
        raise RefusedError(f"point {point.name}: {point.table} has no column {', '.join(absent)}")


def rows_of_keys(
    source: Snapshotted,
    point: TablePoint,
    keys: Iterable[str],
    compare: Mapping[str, str] = MappingProxyType({}),
    *,
    is_exact: bool,
) -> dict[str, list[KeyRow]]:
    """Return all rows of keys in the order of their files, whole. `is_exact`: not those of an equal key in another
    spelling.

    Raises:
        RefusedError: the table cannot hold one of the keys.
    """

    def find(texts: Sequence[str], kinds: Sequence[KeyType]) -> Iterator[tuple[str, KeyRow]]:
        return _found_rows(source, point, texts, kinds, compare)

    return rows_by_key(arrow_schema(source.schema), point, keys, is_exact=is_exact, find=find)


def _found_rows(
    source: Snapshotted,
    point: TablePoint,
    texts: Sequence[str],
    kinds: Sequence[KeyType],
    compare: Mapping[str, str],
) -> Iterator[tuple[str, KeyRow]]:
    """Yield rows with the text of their key by these types."""
    by_kinds = replace(point, key_layout=tuple(kinds))
    where = of_keys(source.schema, by_kinds, WantedKeys.of_texts(by_kinds, texts))
    columns = [field.name for field in source.schema.columns]
    number = table_number(source.table)
    for listed, rows in source.rows(source.files(where), columns, where):
        keys, kept = among(rows.rows, point, texts, kinds)
        if not kept.any():
            continue
        these = rows.only(kept)
        places = source.places(listed, these).to_list()
        origins = [(listed.file.file_path, listed.listing, int(at)) for at in these.numbers]
        yield from zip(keys, key_rows(these.rows, point, number, places, origins, compare), strict=True)


@dataclass(frozen=True, kw_only=True)
class IcebergTable(OpenDataset):
    """A table of a point (`OpenTable`)."""

    connection: IcebergConnection
    point: TablePoint
    description: TableDescription

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        return [row.row for row in self.valued_rows({}, key, is_exact=is_exact, is_latest_first=is_latest_first)]

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        source = self._source(compare)
        rows = in_order(rows_of_keys(source, self.point, [key], compare, is_exact=is_exact).get(key, []))
        return _valued(latest_first(rows) if is_latest_first else rows)

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        by_key = rows_of_keys(self._source(compare), self.point, keys, compare, is_exact=is_exact)
        return {key: _valued(in_order(rows)) for key, rows in by_key.items()}

    def _source(self, compare: Mapping[str, str]) -> Snapshotted:
        source = Snapshotted.of(self.connection, self.point)
        absent = sorted(set(compare) - set(all_types(arrow_schema(source.schema))))
        if absent:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"{self.point.table} has no column {', '.join(absent)} to compare"
            )
        return source


def _valued(rows: Sequence[KeyRow]) -> list[ValuedRow]:
    return [ValuedRow(row=_bare(row.row), place=row.row.place or "", values=row.values) for row in rows]


def _bare(row: TableRow) -> TableRow:
    """Return a row as plans keep it: without its image, of which they have the text."""
    return replace(row, image=None, place=None)


@dataclass(frozen=True, kw_only=True)
class IcebergSession:
    """A session, of which nothing stays open between two requests (`TableSession`)."""

    connection: IcebergConnection

    def open_table(self, point: TablePoint) -> IcebergTable:
        source = table_of(self.connection, point)
        require_columns(source, point)
        return IcebergTable(connection=self.connection, point=point, description=description_of(source, point))

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return {name: sql_type(kind) for name, kind in self._types(point).items()}

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return column_kinds(self._types(point))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return True

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return ()

    def _types(self, point: TablePoint) -> Mapping[str, ColumnType]:
        try:
            return all_types(arrow_schema(table_of(self.connection, point).schema()))
        except NoTableError:
            return {}
