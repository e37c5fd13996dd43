"""Describe the rows of keys of a dataset as plans know them: whatever file they lie in."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from makewhole.datasets.nested_values import row_images, row_texts
from makewhole.datasets.row_frames import times_of_rows, versions_of_rows
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.value_texts import compared_texts
from makewhole.model.points import TablePoint
from makewhole.tables.rows import TableRow, Values

Origin = Any
"""Where a row lies that was there before a chunk; only the dataset's own format knows what it is."""


@dataclass(frozen=True, kw_only=True)
class KeyRow:
    """A row of a key: what plans know it by, its business key, time and version, and its compared values where they
    were asked for. `origin` None: a chunk made it."""

    row: TableRow
    key: str | None
    time: int | None
    version: Decimal | None
    origin: Origin | None = None
    values: Values = field(default_factory=dict)

    @property
    def image(self) -> str:
        """The whole row, exactly."""
        return self.row.image or ""


class OrderedRow(Protocol):
    """A row with what decides its order among those of its key."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def row(self) -> TableRow: ...

    @property
    def time(self) -> int | None: ...

    @property
    def version(self) -> Decimal | None: ...


_Ordered = TypeVar("_Ordered", bound=OrderedRow)


def in_order(rows: Iterable[_Ordered]) -> list[_Ordered]:
    """Return rows by time, in the order given where that is equal, each numbered among those that equal it.

    So plans know rows by what does not change when their file is written again.
    """
    before = Counter[str]()
    numbered = []
    for one in sorted(rows, key=lambda row: (row.time is None, row.time or 0)):
        before[one.row.text] += 1
        numbered.append(replace(one, row=replace(one.row, ctid=str(before[one.row.text]))))
    return numbered


def latest_first(rows: Iterable[_Ordered]) -> list[_Ordered]:
    """Return rows with the latest version first, then the latest time; what has none of them is last."""
    by_time = sorted(rows, key=lambda row: (row.time is None, -(row.time or 0)))
    return sorted(by_time, key=lambda row: (row.version is None, -(row.version or 0)))


def key_rows(
    rows: pa.Table,
    point: TablePoint,
    number: int,
    places: Sequence[str],
    origins: Sequence[Origin | None],
    compare: Mapping[str, str] = MappingProxyType({}),
) -> list[KeyRow]:
    """Return rows as plans know them, with the canonical texts of the columns `compare` (name → declared type).
    `number`: that of their table."""
    texts, images = row_texts(rows), row_images(rows)
    keys, times = key_texts(rows, point).to_list(), times_of_rows(rows, point).to_list()
    versions = versions_of_rows(rows, point).to_list()
    return [
        KeyRow(
            row=TableRow(table_oid=number, ctid="", text=texts[at], image=images[at], place=places[at]),
            key=keys[at],
            time=times[at],
            version=versions[at],
            origin=origins[at],
            values=compared_texts(rows.slice(at, 1), compare),
        )
        for at in range(len(rows))
    ]
