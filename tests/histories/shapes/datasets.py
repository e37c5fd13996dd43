"""Keep the orders of a shop in datasets of every kind: Iceberg tables and folders of files, with positions or keys."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from tests.histories.shapes.changes import TYPES
from tests.world.files_lake import FilesPlace
from tests.world.iceberg_lake import POSITION, Lake
from tests.world.orders import Order
from tests.world.pipeline_file import Settings, dataset

_KINDS: Mapping[str, Any] = {
    "id": pa.string(),
    "number": pa.int64(),
    "region": pa.string(),
    "amount": pa.decimal128(8, 2),
    "at": pa.timestamp("us", "UTC"),
    "due": pa.date32(),
    "is_paid": pa.bool_(),
    "remark": pa.string(),
}
_COLUMNS = pa.schema(_KINDS)
_CENT = Decimal("0.01")
_META = "_kafka_metadata"
_TABLE = "dw.warehouse"
PLACE = ("p", "o")
"""The columns in which a row has the partition and the offset of its record, as this file knows rows."""


class Dataset(Protocol):
    """A dataset of one shop. `settings` are those of its point, `hop` those of the hop that leads to it; `described` is
    the connection `lake`. Without `has_time` it has no time for its point, and so nothing beside the keys of a window
    is read."""

    @property
    def has_position(self) -> bool: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def hop(self) -> Settings: ...

    @property
    def described(self) -> str: ...

    def make(self) -> None:
        """Have it, empty."""
        ...

    def add(self, rows: Iterable[Order]) -> None:
        """Add rows in one file, as a loader does."""
        ...

    def rows(self) -> list[Order]:
        """Return every row that readers see."""
        ...

    def rewrite(self, rows: Sequence[Order]) -> None:
        """Have these rows, in one file, in the place of all that there are."""
        ...

    def list_again(self) -> None:
        """Have the rows of the newest file there once more."""
        ...

    def roll_back(self) -> None:
        """Go back to what was there before the newest snapshot, if there are snapshots, and there was something."""
        ...


@dataclass(frozen=True, kw_only=True)
class IcebergDataset:
    """An Iceberg table; positions are in the column that its Connect sink writes. `warehouse`: where its files are, as
    settings of its catalogue; in the folder, if it does not say."""

    folder: Path
    topic: str
    has_position: bool
    has_time: bool = True
    warehouse: Mapping[str, str] = field(default_factory=dict)

    @property
    def _lake(self) -> Lake:
        return Lake(folder=self.folder, settings=self.warehouse)

    @property
    def described(self) -> str:
        return self._lake.described

    @property
    def settings(self) -> Settings:
        if not self.has_position:
            return dataset("lake", _TABLE)
        positioned = dataset("lake", _TABLE, position=_META, columns=f"{{stamp: {_META}.timestamp}}")
        left_out = ("key",) if self.has_time else ("key", "time")
        return {name: value for name, value in positioned.items() if name not in left_out}

    @property
    def hop(self) -> Settings:
        return {"leave": "[stamp]", "write": "{id: string}"} if self.has_position else {}

    def make(self) -> None:
        schema = _COLUMNS.append(pa.field(_META, POSITION)) if self.has_position else _COLUMNS
        self._lake.make_table(_TABLE, schema)

    def add(self, rows: Iterable[Order]) -> None:
        self._lake.append(_TABLE, [self._row(row) for row in rows])

    def rows(self) -> list[Order]:
        return [self._order(row) for row in self._lake.rows(_TABLE)]

    def rewrite(self, rows: Sequence[Order]) -> None:
        table = self._lake.table(_TABLE)
        table.overwrite(pa.Table.from_pylist([self._row(row) for row in rows], schema=table.schema().as_arrow()))

    def list_again(self) -> None:
        self._lake.list_again(_TABLE)

    def roll_back(self) -> None:
        table = self._lake.table(_TABLE)
        newest = table.current_snapshot()
        if newest is not None and newest.parent_snapshot_id is not None:
            table.manage_snapshots().rollback_to_snapshot(newest.parent_snapshot_id).commit()

    def _row(self, row: Order) -> dict[str, Any]:
        if not self.has_position:
            return _values(row)
        place = {"partition": row["p"], "offset": row["o"], "timestamp": 0, "topic": self.topic}
        return {**_values(row), _META: place}

    def _order(self, row: Mapping[str, Any]) -> Order:
        place = row.get(_META)
        own = dict(zip(PLACE, (place["partition"], place["offset"]), strict=True)) if place else {}
        return {**{name: row[name] for name in _KINDS}, **own}


@dataclass(frozen=True, kw_only=True)
class FilesDataset:
    """Files of Parquet in a folder, or in another `place`."""

    folder: Path
    topic: str
    has_position: bool
    has_time: bool = True
    place: FilesPlace | None = None

    @property
    def _place(self) -> FilesPlace:
        of_folder = {"conn_type": "fs", "extra": {"path": str(self.folder)}}
        return self.place or FilesPlace(path="/warehouse", fields=of_folder)

    @property
    def described(self) -> str:
        return self._place.described

    @property
    def settings(self) -> Settings:
        known = {"position": "{partition: p, offset: o}"} if self.has_position else {"key": "id"}
        timed = {"time": "at"} if self.has_time else {}
        return {
            "kind": "dataset",
            "connection": "lake",
            "format": "parquet",
            "path": self._place.path,
            **known,
            **timed,
        }

    @property
    def hop(self) -> Settings:
        return {"write": "{id: string}"} if self.has_position else {}

    def make(self) -> None:
        if self.place is None:
            self.folder.joinpath("warehouse").mkdir(parents=True)

    def add(self, rows: Iterable[Order]) -> None:
        content, place = list(rows), self._place
        if content:
            place.add(f"part-{len(place.names()):05}.parquet", map(self._row, content), self._schema)

    def rows(self) -> list[Order]:
        return self._place.rows()

    def rewrite(self, rows: Sequence[Order]) -> None:
        place = self._place
        old = self._visible()
        place.add(f"part-{self._next()}-compacted.parquet", map(self._row, rows), self._schema)
        for name in old:
            place.store.remove(name)

    def list_again(self) -> None:
        place, newest = self._place, self._visible()[-1]
        place.store.replace(f"part-{self._next()}-again.parquet", place.content(newest))

    def roll_back(self) -> None:
        """Do nothing: files have no snapshots."""

    def _next(self) -> str:
        return f"{len(self._place.names()):05}"

    def _visible(self) -> list[str]:
        return sorted(name for name in self._place.names() if not any(part[0] in "._" for part in name.split("/")))

    @property
    def _schema(self) -> pa.Schema:
        places = [pa.field("p", pa.int32()), pa.field("o", pa.int64())] if self.has_position else []
        return pa.schema([*_COLUMNS, *places])

    def _row(self, row: Order) -> dict[str, Any]:
        return {**_values(row), **({name: row[name] for name in PLACE} if self.has_position else {})}


def _values(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of an order, or of a row that was read, by values of Python."""
    at, due = order["at"], order["due"]
    row = {
        **order,
        "amount": Decimal(order["amount"]).quantize(_CENT),
        "at": datetime.fromisoformat(at) if isinstance(at, str) else at,
        "due": date.fromisoformat(due) if isinstance(due, str) else due,
    }
    return {name: row[name] for name in ("id", *TYPES)}


def essence(rows: Iterable[Order], *, has_position: bool) -> list[str]:
    """Return rows as texts, in order: two datasets with the same rows have the same."""
    columns = ("id", *TYPES, *(PLACE if has_position else ()))
    plain = ({**row, **_values(row)} if isinstance(row["amount"], str) else row for row in rows)
    return sorted(str([str(row[name]) for name in columns]) for row in plain)


def in_files(rows: Sequence[Order], seed: int) -> list[list[Order]]:
    """Return rows divided into a few files."""
    chance, left, files = random.Random(f"files {seed}"), list(rows), list[list[Order]]()
    while left:
        size = chance.randint(1, max(1, len(left)))
        files.append(left[:size])
        left = left[size:]
    return files
