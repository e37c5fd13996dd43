"""Keep the tables of a database in memory: rows with places, changes with numbers, and what chunks leave beside them.

Every change of a row has a number that only grows. A row that is changed gets another place: its number in the table
and how often it was written.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from makewhole.model.errors import RefusedError
from makewhole.model.points import TablePoint
from makewhole.tables.description import Column, TableDescription
from makewhole.tables.effects import Effect
from makewhole.tables.identities import ServerIdentity
from makewhole.tables.receipts import ReceiptRow
from makewhole.tables.rows import TableRow

RowValues = Mapping[str, str | None]
"""Column → its text, as `tests.memory.values` writes it; None: it is empty."""
PlanAtPoint = tuple[str, str]
"""A plan and a target."""


def image_of(values: RowValues) -> str:
    """Return a whole row as a JSON text."""
    return json.dumps(dict(values), ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """A row as it was written by change `changed`, its `version`th; `id` is its number in the table."""

    id: int
    version: int
    changed: int
    values: RowValues

    @property
    def place(self) -> str:
        """Where it lies; a row that is changed has another place."""
        return f"({self.id},{self.version})"

    @property
    def image(self) -> str:
        """The whole row as a JSON text."""
        return image_of(self.values)


@dataclass(kw_only=True)
class StoredTable:
    """A table of a database; `number` is its own there."""

    number: int
    name: str
    columns: Mapping[str, Column]
    rows: dict[int, StoredRow] = field(default_factory=dict)
    last_id: int = 0

    def row(self, row: StoredRow, *, has_image: bool = False) -> TableRow:
        """Return a row as plans know it, with its image and place where they are asked for."""
        image, place = (row.image, row.place) if has_image else (None, None)
        return TableRow(table_oid=self.number, ctid=row.place, text=row.image, image=image, place=place)

    def at(self, row: TableRow) -> StoredRow:
        """Return the row that lies where another one did when it was read."""
        return next(stored for stored in self.rows.values() if stored.place == row.ctid)


@dataclass(kw_only=True)
class RowAside:
    """A row that was moved aside, and whether it was put back."""

    image: str
    is_back: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredReceipt:
    """The receipt of a chunk, with the digest of the plan that it was given for."""

    receipt: ReceiptRow
    plan_sha256: str


@dataclass(kw_only=True)
class Database:
    """A database of a server. `changes` is the number of the last change; `views` are the tables that are held as they
    were, by name; `fences` have the lease from which on runners may write; `aside` is by plan, action and place."""

    identity: ServerIdentity
    tables: dict[str, StoredTable] = field(default_factory=dict)
    changes: int = 0
    views: dict[str, StoredTable] = field(default_factory=dict)
    last_view: int = 0
    receipts: dict[PlanAtPoint, dict[int, StoredReceipt]] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    fences: dict[PlanAtPoint, int] = field(default_factory=dict)
    aside: dict[tuple[str, int, str], RowAside] = field(default_factory=dict)

    def table(self, point: TablePoint) -> StoredTable:
        """Return the table of a point.

        Raises:
            RefusedError: there is none, or it lacks a column that the point names.
        """
        if point.table not in self.tables:
            raise RefusedError(f"point {point.name}: there is no table {point.table} in memory")
        table = self.tables[point.table]
        absent = [name for name in _named(point) if name not in table.columns]
        if absent:
            raise RefusedError(f"point {point.name}: {point.table} has no column {', '.join(absent)}")
        return table

    def description(self, table: StoredTable) -> TableDescription:
        """Return what is known of a table."""
        return TableDescription(schema=f"memory_{self.identity.database}", name=table.name, columns=table.columns)

    def insert(self, table: StoredTable, values: RowValues) -> StoredRow:
        """Add a row with a number of its own."""
        table.last_id += 1
        return self._put(table, StoredRow(id=table.last_id, version=0, changed=0, values=values))

    def update(self, table: StoredTable, row: StoredRow, values: RowValues) -> StoredRow:
        """Write a row again, at another place."""
        return self._put(table, replace(row, values=values))

    def delete(self, table: StoredTable, row: StoredRow) -> None:
        """Take a row away."""
        self.changes += 1
        del table.rows[row.id]

    def _put(self, table: StoredTable, row: StoredRow) -> StoredRow:
        self.changes += 1
        table.rows[row.id] = replace(row, version=row.version + 1, changed=self.changes)
        return table.rows[row.id]


def _named(point: TablePoint) -> Iterator[str]:
    """Yield the columns that a point names."""
    yield from point.key
    yield from (name for name in (point.time, point.version) if name is not None)
