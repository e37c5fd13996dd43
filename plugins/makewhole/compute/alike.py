"""JSON objects of one layout, read side by side: where each leaf value stands in each of them.

An object follows a layout when its bytes are the layout's fixed text with a valid leaf value of the same kind in each
gap: then it is JSON, and has the same names in the same places.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from makewhole.compute.byte_strings import PADDING_BYTES, Content
from makewhole.compute.json_layout import Layout
from makewhole.compute.leaves import MOST_BYTES_AT_ONCE, Leaves, scalars_at, texts_at
from makewhole.compute.words import WORD_BYTES, Bools, Longs, begin_with, words_at

_Array = Any  # pyarrow.Array: its type stubs know nothing of binary columns and views
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Values:
    """The values of a column by where they stand. Nulls are empty, and so is what does not stand in the content."""

    content: Content
    starts: Longs
    lengths: Longs

    @classmethod
    def of(cls, column: _Array) -> "Values":
        """Of a binary column, or of one of views."""
        if column.type == pa.binary():
            return cls._of_binary(column)
        views = np.frombuffer(column.buffers()[1], dtype=np.int32).reshape(-1, 4)[column.offset :][: len(column)]
        is_apart = (views[:, 0] > _INLINE) & (views[:, 2] == 0)
        lengths = np.where(is_apart, views[:, 0], 0)
        content = Content(column.buffers()[2] if len(column.buffers()) > 2 else b"")
        return cls(content=content, starts=views[:, 3].astype(np.int64), lengths=_without_nulls(column, lengths))

    @classmethod
    def _of_binary(cls, column: _Array) -> "Values":
        _, edges, content = column.buffers()
        edges = np.frombuffer(edges, dtype=np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
        padded = b"".join([memoryview(content or b"")[edges[0] : edges[-1]], bytes(PADDING_BYTES)])
        starts = edges[:-1] - edges[0]
        return cls(content=Content(padded), starts=starts, lengths=_without_nulls(column, np.diff(edges)))

    def __getitem__(self, row: int) -> bytes:
        start = int(self.starts[row])
        return bytes(self.content.bytes[start : start + int(self.lengths[row])])


_INLINE = 12


def _without_nulls(column: _Array, lengths: Longs) -> Longs:
    if column.null_count:
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return lengths.astype(np.int64, copy=False)


@dataclass(kw_only=True)
class Alike:
    """The objects that follow a layout, as far as it was followed: `rows` of the values, and their leaves."""

    content: Content
    rows: Rows
    cursor: Longs
    ends: Longs
    leaves: list[Leaves] = field(default_factory=list)

    def keep(self, good: Bools) -> None:
        """Go on with the good ones only."""
        if good.all():
            return
        self.rows, self.cursor, self.ends = self.rows[good], self.cursor[good], self.ends[good]
        self.leaves = [leaf.take(good) for leaf in self.leaves]

    def pass_text(self, text: bytes) -> None:
        """Step over a fixed text."""
        count = -(-len(text) // WORD_BYTES)
        self._keep_with_room(count * WORD_BYTES)
        self.keep(begin_with(words_at(self.content.bytes, self.cursor, count), text))
        self.cursor = self.cursor + len(text)

    def pass_leaf(self, *, is_text: bool, likely_bytes: int, following: int) -> None:
        """Step over a leaf value, behind which this byte stands."""
        self._keep_with_room(MOST_BYTES_AT_ONCE)
        if is_text:
            leaf, good = texts_at(self.content, self.cursor, self.ends, likely_bytes)
        else:
            leaf, good = scalars_at(self.content, self.cursor, following, likely_bytes)
        self.leaves.append(leaf)
        self.cursor = self.cursor + leaf.lengths
        self.keep(good & (self.cursor < self.ends))

    def _keep_with_room(self, size_bytes: int) -> None:
        """Words are read on behind the end of a value."""
        self.keep(self.cursor <= len(self.content.bytes) - size_bytes)


def follow(layout: Layout, values: Values, rows: Rows) -> Alike:
    """Those of the rows that follow the layout."""
    rows = rows[values.lengths[rows] >= layout.least_bytes]
    starts = values.starts[rows]
    alike = Alike(content=values.content, rows=rows, cursor=starts, ends=starts + values.lengths[rows])
    for text, leaf, behind in zip(layout.texts, layout.leaves, layout.texts[1:], strict=False):
        alike.pass_text(text)
        alike.pass_leaf(is_text=leaf.is_text, likely_bytes=leaf.size_bytes, following=behind[0])
    alike.pass_text(layout.texts[-1])
    alike.keep(alike.cursor == alike.ends)
    return alike
