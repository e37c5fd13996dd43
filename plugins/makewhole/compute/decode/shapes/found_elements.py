"""Hold the elements of many records that a format has found at once as rows of their own: lists, taken apart.

A column of the record is read once for each record, and repeated; a column of the element is read for each element.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.raw_columns import with_keys
from makewhole.compute.decode.same_layout import VERSION
from makewhole.compute.decode.value_format import DecodedParts, WantedLeaf
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.native.arrays import Bools, Int64s

WantedLeaves = Mapping[str, WantedLeaf]
_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ElementGroup:
    """Records that are read in one way, in order, and how many elements each has. `decode` returns the wanted columns
    as `ValueFormat.decode_together` does, by the number of the element among those of the group."""

    rows: Int64s
    counts: Int64s
    decode: Callable[[WantedLeaves], DecodedParts]


@dataclass(frozen=True, kw_only=True)
class FoundElements:
    """The elements of a batch of so many records: those of all groups, by record and then in their order."""

    records: int
    groups: Sequence[ElementGroup]

    @cached_property
    def is_found(self) -> Bools:
        """Whether the elements of each record were found; the others are left."""
        flags = np.zeros(self.records, dtype=np.bool_)
        for group in self.groups:
            flags[group.rows] = True
        return flags

    @cached_property
    def counts(self) -> Int64s:
        """How many elements of each record were found."""
        counts = np.zeros(self.records, dtype=np.int64)
        for group in self.groups:
            counts[group.rows] = group.counts
        return counts

    def decode_together(self, wanted: WantedLeaves) -> DecodedParts:
        """Decode as `ValueFormat.decode_together` does, by the number of the element among all."""
        first = np.cumsum(self.counts) - self.counts
        parts, lefts = list[tuple[Int64s, pl.DataFrame]](), [_NO_ROWS]
        for group in self.groups:
            numbers = np.repeat(first[group.rows], group.counts) + within_each(group.counts)
            own, left = group.decode(wanted)
            parts += [(numbers[at], frame) for at, frame in own]
            lefts.append(numbers[left])
        return parts, np.concatenate(lefts)


@runtime_checkable
class DividingFormat(Protocol):
    """A format that finds the elements of many records at once."""

    def find_elements(self, batch: pa.RecordBatch, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the arrays at a path, for what is wanted at these places: of the record, or of an
        element, which stands where its array does. Records that are not usual are left, as by
        `ValueFormat.decode_together`."""
        ...


def within_each(counts: Int64s) -> Int64s:
    """Return the number of each element in its record."""
    numbers: Int64s = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def decode_elements(
    column: Callable[[str, WantedLeaf], pl.Series | None], wanted: WantedLeaves, divided_at: Path, counts: Int64s
) -> DecodedParts:
    """Decode the elements of records as `ElementGroup.decode` does. `column` returns one, with a row for each element
    where it is of those, else for each record; None: no value has it."""
    records, columns = np.repeat(np.arange(len(counts)), counts), []
    for name, leaf in wanted.items():
        read = column(name, leaf)
        if read is None:
            kind = VERSION_NUMBER if leaf.declared == VERSION else pl.String
            read = pl.repeat(None, len(records), dtype=kind, eager=True)
        elif not is_below(leaf.path, divided_at):
            read = read.gather(records)
        columns.append(read.alias(name))
    elements = np.arange(len(records))
    rows, frame = with_keys(elements, pl.DataFrame(columns))
    return ([(rows, frame)] if len(rows) else []), np.setdiff1d(elements, rows, assume_unique=True)


def is_below(path: Path, divided_at: Path) -> bool:
    """Return whether a place is of an element, and not of its record."""
    return path[: len(divided_at)] == divided_at
