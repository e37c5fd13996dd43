"""Keep the rows that add the lines of orders up: in a table, in an Iceberg table, in files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from tests.world.files_lake import FilesPlace
from tests.world.iceberg_lake import Lake
from tests.world.orders import BORN, DAY
from tests.world.pipeline_file import Settings, dataset, store
from tests.world.sql import run_sql

_KINDS: Mapping[str, Any] = {
    "id": pa.string(),
    "lines": pa.int32(),
    "total": pa.decimal128(12, 2),
    "at": pa.timestamp("us", "UTC"),
}
_COLUMNS = pa.schema(_KINDS)
_TABLE = "dw.totals"


class TotalsRow(NamedTuple):
    """A row of an order, with the day of its time."""

    order: str
    lines: int | None
    total: str | None
    day: float = 0

    def values(self) -> dict[str, Any]:
        """Return the columns by values of Python."""
        total = None if self.total is None else Decimal(self.total)
        return {"id": self.order, "lines": self.lines, "total": total, "at": _time(self.day)}


def _time(day: float) -> datetime:
    return BORN + day * DAY


class RowsOfTotals(Protocol):
    """A store of such rows. `settings` are those of its point; `described` is the connection `lake`."""

    @property
    def settings(self) -> Settings: ...

    @property
    def described(self) -> str: ...

    def write(self, rows: Iterable[TotalsRow]) -> None:
        """Have these rows in the place of all that there are."""
        ...


@dataclass(frozen=True, kw_only=True)
class TotalsInTable:
    """A table of PostgreSQL."""

    dsn: str

    @property
    def settings(self) -> Settings:
        return store("db", "totals")

    @property
    def described(self) -> str:
        return "{}"

    def write(self, rows: Iterable[TotalsRow]) -> None:
        run_sql(self.dsn, "drop table if exists totals")
        run_sql(self.dsn, "create table totals (id text, lines int, total numeric(12,2), at timestamptz)")
        for row in rows:
            run_sql(self.dsn, "insert into totals values (%s, %s, %s, %s)", *row.values().values())


@dataclass(frozen=True, kw_only=True)
class TotalsInIceberg:
    """An Iceberg table in a folder, whose rows are replaced in a snapshot of their own."""

    folder: Path

    @property
    def _lake(self) -> Lake:
        return Lake(folder=self.folder)

    @property
    def settings(self) -> Settings:
        return dataset("lake", _TABLE)

    @property
    def described(self) -> str:
        return self._lake.described

    def write(self, rows: Iterable[TotalsRow]) -> None:
        lake, content = self._lake, _table(rows)
        if lake.catalog.table_exists(_TABLE):
            lake.table(_TABLE).overwrite(content)
        else:
            lake.make_table(_TABLE, _COLUMNS).append(content)


@dataclass(frozen=True, kw_only=True)
class TotalsInFiles:
    """A folder with one file, which is replaced."""

    folder: Path

    @property
    def _place(self) -> FilesPlace:
        return FilesPlace(path="/totals", fields={"conn_type": "fs", "extra": {"path": str(self.folder)}})

    @property
    def settings(self) -> Settings:
        of_files = {"connection": "lake", "format": "parquet", "path": self._place.path}
        return {"kind": "dataset", **of_files, "key": "id", "time": "at"}

    @property
    def described(self) -> str:
        return self._place.described

    def write(self, rows: Iterable[TotalsRow]) -> None:
        self.folder.joinpath("totals").mkdir(exist_ok=True)
        self._place.add("part-0.parquet", [row.values() for row in rows], _COLUMNS)


def _table(rows: Iterable[TotalsRow]) -> pa.Table:
    return pa.Table.from_pylist([row.values() for row in rows], schema=_COLUMNS)
