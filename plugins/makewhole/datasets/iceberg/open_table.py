"""Read the rows of keys of an Iceberg table as it is now, as plans take them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import column_text
from makewhole.compute.value_types import ColumnKind
from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.column_types import column_kinds, sql_type
from makewhole.datasets.iceberg.catalog import NoTableError, load_table
from makewhole.datasets.iceberg.data_files import ListedFile
from makewhole.datasets.iceberg.describe import arrow_schema, description_of, table_number
from makewhole.datasets.iceberg.predicates import of_keys
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.nested_columns import all_types, column_at
from makewhole.datasets.nested_values import row_images, row_texts
from makewhole.datasets.row_frames import is_of_topics, times_of_rows, versions_of_rows
from makewhole.datasets.row_keys import key_texts, wanted_key
from makewhole.datasets.value_texts import declared_texts
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow


def refuse_ledger() -> NoReturn:
    """Refuse what only ledgers are asked for: a dataset is none."""
    raise RefusedError("an Iceberg table cannot be a ledger")


@dataclass(frozen=True, kw_only=True)
class RowInFile:
    """A row of a key: where it lies, its values, and what plans know it by. `listed` and `number`: its file and its
    number there; `key`: as its point reads it."""

    listed: ListedFile
    number: int
    key: str
    time: int | None
    version: object
    row: TableRow
    values: pa.Table


def rows_of_keys(
    source: Snapshotted, point: TablePoint, keys: Iterable[str], *, is_exact: bool, has_images: bool = False
) -> dict[str, list[RowInFile]]:
    """Return all rows of keys by time and place, whole. `is_exact`: not those of an equal key in another spelling.

    What plans know a row by does not change when its file is written again: its values, and which of equal ones it is.

    Raises:
        RefusedError: the table cannot hold one of the keys.
    """
    schema = arrow_schema(source.schema)
    wanted = {key: wanted_key(schema, point, key, is_exact=is_exact) for key in keys}
    if not wanted:
        return {}
    kinds = next(iter(wanted.values()))[1]
    asked = [text for text, _ in wanted.values()]
    found: dict[str, list[RowInFile]] = {text: [] for text in asked}
    for row in _found_rows(source, point, asked, kinds, has_images=has_images):
        found[row.key].append(row)
    return {key: _in_order(found[text]) for key, (text, _) in wanted.items() if found[text]}


def _found_rows(
    source: Snapshotted, point: TablePoint, texts: Sequence[str], kinds: Sequence[KeyType], *, has_images: bool
) -> Iterator[RowInFile]:
    where = of_keys(source.schema, point, texts)
    columns = [field.name for field in source.schema.columns]
    asked, number = pl.Series(texts, dtype=pl.String).implode(), table_number(source.table)
    for listed, rows in source.rows(source.files(where), columns, where):
        keys = key_texts(rows.rows, point, kinds)
        own = is_of_topics(rows.rows, point)
        kept = keys.is_in(asked).fill_null(value=False)
        kept = kept if own is None else kept & own
        if not kept.any():
            continue
        values = rows.rows.filter(pa.array(kept.to_numpy()))
        numbers = rows.numbers[kept.to_numpy()]
        places = source.places(listed, type(rows)(rows=values, numbers=numbers)).to_list()
        images = row_images(values) if has_images else [None] * len(values)
        described = zip(keys.filter(kept), numbers, places, row_texts(values), images, strict=True)
        times, versions = times_of_rows(values, point).to_list(), versions_of_rows(values, point).to_list()
        for at, (key, row_number, place, text, image) in enumerate(described):
            yield RowInFile(
                listed=listed,
                number=int(row_number),
                key=key,
                time=times[at],
                version=versions[at],
                row=TableRow(table_oid=number, ctid="", text=text, image=image, place=place),
                values=values.slice(at, 1),
            )


def _in_order(rows: Sequence[RowInFile]) -> list[RowInFile]:
    """Return rows by time and place, each numbered among those that equal it."""
    ordered = sorted(rows, key=lambda row: (row.time is None, row.time or 0, row.listed.sequence, row.row.place or ""))
    before = Counter[str]()
    numbered = []
    for one in ordered:
        before[one.row.text] += 1
        row = TableRow(
            table_oid=one.row.table_oid,
            ctid=str(before[one.row.text]),
            text=one.row.text,
            image=one.row.image,
            place=one.row.place,
        )
        numbered.append(RowInFile(**{**vars(one), "row": row}))
    return numbered


def latest_first(rows: Sequence[RowInFile]) -> list[RowInFile]:
    """Return rows with the latest version first, then the latest time; what has none of them is last."""
    by_time = sorted(rows, key=lambda row: (row.time is None, -(row.time or 0)))
    return sorted(by_time, key=lambda row: (row.version is None, -(row.version or 0)))  # type: ignore[operator]


@dataclass(frozen=True, kw_only=True)
class IcebergTable:
    """A table of a point (`OpenTable`)."""

    connection: IcebergConnection
    point: TablePoint
    description: TableDescription

    locks_for_new_rows = False

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        return [one.row for one in self.valued_rows({}, key, is_exact=is_exact, is_latest_first=is_latest_first)]

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        source = self._source(compare)
        rows = rows_of_keys(source, self.point, [key], is_exact=is_exact).get(key, [])
        return _valued(latest_first(rows) if is_latest_first else rows, compare)

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        found = rows_of_keys(self._source(compare), self.point, keys, is_exact=is_exact)
        return {key: _valued(rows, compare) for key, rows in found.items()}

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        refuse_ledger()

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        refuse_ledger()

    def erased(self, keys: Sequence[str]) -> set[str]:
        return set()

    def require_quarantine_possible(self) -> None:
        """Do nothing: no table reaches into another one."""

    def _source(self, compare: Mapping[str, str]) -> Snapshotted:
        source = Snapshotted(self.connection, self.point.table, None)
        absent = sorted(set(compare) - set(all_types(arrow_schema(source.schema))))
        if absent:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"{self.point.table} has no column {', '.join(absent)} to compare"
            )
        return source


def _valued(rows: Sequence[RowInFile], compare: Mapping[str, str]) -> list[ValuedRow]:
    return [
        ValuedRow(row=one.row, place=one.row.place or "", values=compared_texts(one.values, compare)) for one in rows
    ]


def compared_texts(row: pa.Table, compare: Mapping[str, str]) -> dict[str, str | None]:
    """Return the canonical texts of columns of one row."""
    return {
        name: column_text(declared_texts(column_at(row, name), declared)[0], declared)
        for name, declared in compare.items()
    }


@dataclass(frozen=True, kw_only=True)
class IcebergSession:
    """A session, of which nothing stays open between two requests (`TableSession`)."""

    connection: IcebergConnection

    def open_table(self, point: TablePoint) -> IcebergTable:
        source = load_table(self.connection, point.table)
        known = all_types(arrow_schema(source.schema()))
        absent = sorted(point.named_columns - set(known))
        if absent:
            raise RefusedError(f"point {point.name}: {point.table} has no column {', '.join(absent)}")
        return IcebergTable(connection=self.connection, point=point, description=description_of(source))

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return {name: sql_type(kind) for name, kind in self._types(point).items()}

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return column_kinds(self._types(point))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return True

    def _types(self, point: TablePoint) -> Mapping[str, ColumnType]:
        try:
            return all_types(arrow_schema(load_table(self.connection, point.table).schema()))
        except NoTableError:
            return {}
