"""Name what can be read of tables, whatever system keeps them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from makewhole.compute.value_types import ColumnKind
from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.tables.description import TableDescription
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.rows import LedgerReading, LedgerRecord, TableRow, ValuedRow
from makewhole.tables.shape import RowsAhead, TimeBounds


@dataclass(frozen=True, kw_only=True)
class UnreadableFile:
    """A file of a table that cannot be read, or that no reader takes: its path, its size, and when it was written.
    `is_spoilt`: it is whole, and pages of it do not decode. `is_gone`: it is not there, and a list of the table names
    it. `commit`: the snapshot that brought it, where the table has snapshots."""

    path: str
    size_bytes: int
    written: datetime
    is_spoilt: bool = False
    is_gone: bool = False
    commit: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReadPlan:
    """How the rows of a table are read by several readers, under one view of its data.

    `view` is what a reader reads by while the view is held; `seen` says later which rows it saw. Each of `parts` is
    what the table's own system takes it to be, and travels to its reader. `unreadable`: files that should be read and
    cannot be, so that what they hold is not known. `not_taken`: files beside them that look like rows, and that no
    reader takes.
    """

    view: str
    seen: str
    parts: tuple[Any, ...]
    unreadable: tuple[UnreadableFile, ...] = ()
    not_taken: tuple[UnreadableFile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadBefore:
    """A reading of the rows inside some bounds of a table.

    `mark` is what the view said of the table itself (`TableView.mark`), `seen` which rows it saw; `rows` is the number
    of rows that the system sent.
    """

    mark: Any
    seen: str
    rows: int


class TableReader(Protocol):
    """Reads rows as frames for `makewhole.compute.normalise.table_frame`, which says what their columns are."""

    @property
    def counted(self) -> int:
        """The number of rows that the system says it sent; complete when all frames were taken."""
        ...

    @property
    def in_doubt(self) -> Sequence[TransactionInDoubt]:
        """The transactions in doubt that had written to the table before `keys` read it, or had when it was done: they
        may hold keys that it did not find. Complete when all frames were taken."""
        ...

    @property
    def unreadable(self) -> Sequence[UnreadableFile]:
        """The files of a view that is held which turned out to be gone or not to decode: the view is to leave them out,
        and all is to be read again. Complete when all frames were taken."""
        ...

    def part(self, bounds: TimeBounds | None, part: Any) -> Iterator[pl.DataFrame]:
        """Read the rows of a part of a `ReadPlan`.

        Raises:
            TransientError: the connection broke, or fewer rows arrived than were sent.
        """
        ...

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        """Read every row with one of these business keys, whatever its time. `since`: what a view of the table saw
        (`TableView.seen`) that had no row of any of them: what was there then need not be read again.

        Raises:
            TransientError: as `part`.
        """
        ...

    def keys_in_part(self, keys: pl.DataFrame, part: Any) -> Iterator[pl.DataFrame]:
        """Read the rows with one of these business keys in a part of a `ReadPlan`: the view `reads_keys_by_parts`.
        `keys` has `key`, or `partition` and `offset` of keys that are positions. `in_doubt` is not asked.

        Raises:
            TransientError: as `part`.
        """
        ...


class TableView(Protocol):
    """A view of a table's data that is held open, while others read it."""

    @property
    def seen(self) -> str:
        """Identity of the view, from which its rows are known later."""
        ...

    @property
    def has_places(self) -> bool:
        """Whether rows have places of their own, and tell when they came: those of a view of SQL do not."""
        ...

    @property
    def size_bytes(self) -> int:
        """The size of the table."""
        ...

    @property
    def has_time_index(self) -> bool:
        """Whether the rows of a slice of time are found without reading all of the table."""
        ...

    @property
    def has_key_index(self) -> bool:
        """Whether the rows of a key are found without reading all of the table."""
        ...

    @property
    def reads_keys_by_parts(self) -> bool:
        """Whether the rows of many keys are found by reading each part once: no index leads to them."""
        ...

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        """Take files that readers could not decode for such as cannot be read, in every plan from now on."""
        ...

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        """Return the plan for reading the rows inside the bounds, in at most so many parts."""
        ...

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        """Return the number of rows of each slice by its window; those without a time are in none."""
        ...

    def count_rows_and_ahead(self, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        """Return the number of rows of each slice by its window, and the rows ahead of the clock."""
        ...

    def count_new_rows(self, of: TimeSlice, seen: str) -> int:
        """Return the number of rows of a slice that an earlier view may not have had; changed rows count."""
        ...

    def mark(self, bounds: TimeBounds | None) -> Any:
        """Return what has to be the same, in JSON, for the rows inside the bounds to be the same in a later view; None:
        nothing would show it. Called once the reading is planned."""
        ...

    def why_not_same(self, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
        """Return why the rows inside the bounds may be others than they were in an earlier reading of the same columns;
        None: they are the same, with the same places."""
        ...


class OpenTable(Protocol):
    """A table of a point, open for reading the rows of keys. Several reads need not be of one moment."""

    @property
    def point(self) -> TablePoint: ...

    @property
    def description(self) -> TableDescription: ...

    @property
    def locks_for_new_rows(self) -> bool:
        """Whether other writers of the table wait while a chunk puts new rows into it."""
        ...

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        """Return all rows of a key by time, or the latest version first: the first is the survivor. `is_exact`: not
        those of an equal key in another spelling.

        Raises:
            RefusedError: the table cannot hold such a key.
        """
        ...

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        """Return the same with the values of these columns (name → declared type).

        Raises:
            RefusedError: the table lacks a compared column, or cannot hold such a key.
        """
        ...

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        """Return the rows of each key that has any, by time.

        Raises:
            RefusedError: as `valued_rows`; ask for the keys one by one then.
        """
        ...

    def ledger_record(self, key: str, reading: LedgerReading) -> LedgerRecord | None:
        """Read the key's row now, as a record; None when the ledger no longer has it."""
        ...

    def ledger_records(self, keys: Sequence[str], reading: LedgerReading) -> Mapping[str, LedgerRecord]:
        """Read the row of each key that the ledger has now, as `ledger_record` does of one.

        Raises:
            RefusedError: one of the keys is none that the table can hold; ask for them one by one then.
        """
        ...

    def erased(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that a table or a column of the point's `erased` names."""
        ...

    def require_quarantine_possible(self) -> None:
        """Check that moving rows aside does not reach into other tables.

        Raises:
            RefusedError: it does.
        """
        ...


class TableSession(Protocol):
    """A session at the system that keeps some tables."""

    def open_table(self, point: TablePoint) -> OpenTable:
        """Open the table of a point.

        Raises:
            RefusedError: there is no such table, or it lacks a column that the point names.
        """
        ...

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        """Return the types of all columns of a table, by name; empty: there is no such table."""
        ...

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        """Return the kinds of a table's columns by name."""
        ...

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        """Return whether these columns of a table may be read, as far as they exist."""
        ...

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        """Return the statements that grant this session's user what it lacks to do these acts (`insert`, `update`,
        `delete`) with rows of a table, and to keep receipts beside it; none where the system has no such rights."""
        ...


BYTES_WITHOUT_INDEX = 32 << 20
"""The size up to which a table is soon read whole, so that no index is missing."""
