"""Describe the rows of keys of a dataset as plans know them: whatever file they lie in."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from makewhole.datasets.nested_values import row_images, row_texts
from makewhole.datasets.row_frames import is_of_topics, times_of_rows, versions_of_rows
from makewhole.datasets.row_keys import key_texts, wanted_key
from makewhole.datasets.value_texts import compared_texts
from makewhole.model.points import KeyType, TablePoint
from makewhole.native.arrays import Bools
from makewhole.tables.rows import TableRow, Values

Origin = Any
"""Where a row lies that was there before a chunk; only the dataset's own format knows what it is."""


@dataclass(frozen=True, kw_only=True)
class DescribedRow:
    """A row of a key: what plans know it by, its business key, and what decides its order among those of its key."""

    row: TableRow
    key: str | None
    time: int | None
    version: Decimal | None


@dataclass(frozen=True, kw_only=True)
class KeyRow(DescribedRow):
    """A row with its compared values where they were asked for. `origin` None: a chunk made it."""

    origin: Origin | None = None
    values: Values = field(default_factory=dict)

    @property
    def image(self) -> str:
        """The whole row, exactly."""
        return self.row.image or ""


_Described = TypeVar("_Described", bound=DescribedRow)
Find = Callable[[Sequence[str], Sequence[KeyType]], Iterable[tuple[str, _Described]]]
"""Yields the rows of keys by the texts of these and their types, each with its text."""


def in_order(rows: Iterable[_Described]) -> list[_Described]:
    """Return rows by time, in the order given where that is equal, each numbered among those that equal it.

    So plans know rows by what does not change when their file is written again.
    """
    before = Counter[str]()
    numbered = []
    for described in sorted(rows, key=lambda row: (row.time is None, row.time or 0)):
        before[described.row.text] += 1
        numbered.append(replace(described, row=replace(described.row, ctid=str(before[described.row.text]))))
    return numbered


def latest_first(rows: Iterable[_Described]) -> list[_Described]:
    """Return rows with the latest version first, then the latest time; what has none of them is last."""
    by_time = sorted(rows, key=lambda row: (row.time is None, -(row.time or 0)))
    return sorted(by_time, key=lambda row: (row.version is None, -(row.version or 0)))


def rows_by_key(
    schema: pa.Schema, point: TablePoint, keys: Iterable[str], *, is_exact: bool, find: Find[_Described]
) -> dict[str, list[_Described]]:
    """Return the rows of keys, in the order in which `find` yields them; a key without one is left out. `is_exact`: not
    those of an equal key in another spelling.

    Raises:
        RefusedError: the dataset cannot hold one of the keys.
    """
    wanted = {key: wanted_key(schema, point, key, is_exact=is_exact) for key in keys}
    if not wanted:
        return {}
    kinds = next(iter(wanted.values()))[1]
    by_text: dict[str, list[_Described]] = {text: [] for text, _ in wanted.values()}
    for text, row in find(list(by_text), kinds):
        by_text[text].append(row)
    return {key: by_text[text] for key, (text, _) in wanted.items() if by_text[text]}


def among(rows: pa.Table, point: TablePoint, texts: Sequence[str], kinds: Sequence[KeyType]) -> tuple[pl.Series, Bools]:
    """Return which rows have one of these keys, read by these types, and are of the point's topics; before it the texts
    of the keys of those rows."""
    keys, own = key_texts(rows, point, kinds), is_of_topics(rows, point)
    kept = keys.is_in(pl.Series(texts, dtype=pl.String).implode()).fill_null(value=False)
    kept = kept if own is None else kept & own
    return keys.filter(kept), kept.to_numpy()


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
