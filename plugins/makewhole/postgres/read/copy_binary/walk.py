"""Find every field in the rows of a binary COPY (PostgreSQL documentation, "COPY", "Binary Format"), in one pass.

A row is its number of fields, then each one's length and bytes; length -1 is null. Nothing is read behind the end of
the content: a row that is not whole yet is left for when more has come.
"""

from dataclasses import dataclass

import numpy as np

from makewhole.model.errors import TransientError
from makewhole.native.arrays import Int32s, UInt8s
from makewhole.native.byte_strings import Content
from makewhole.native.compiled import compiled, inlined
from makewhole.postgres.read.copy_binary.render import Fields

_SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
_NUMBERS_BYTES = 8  # flags, and the length of the header's extension
_TRAILER_BYTES = 2
_MORE, _ENDED, _MALFORMED = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class BinaryRows:
    """Rows within a content. Field `f` of row `r` stands at `starts[f, r]`; its length is `lengths[f, r]`, -1 for
    null."""

    content: Content
    starts: Int32s
    lengths: Int32s

    def __len__(self) -> int:
        return int(self.starts.shape[1])

    def fields(self, column: int) -> Fields:
        """Return one column."""
        return Fields(self.content.bytes, self.starts[column], self.lengths[column])

    def part(self, start: int, end: int) -> "BinaryRows":
        """Return the rows `[start, end)`."""
        return BinaryRows(content=self.content, starts=self.starts[:, start:end], lengths=self.lengths[:, start:end])


class RowWalk:
    """The walk over a COPY that comes in chunks."""

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self._rest = b""
        self._has_header = False
        self.is_ended = False

    def rows(self, chunk: bytes) -> BinaryRows:
        """Return the rows that are whole with this chunk.

        Raises:
            TransientError: what came is not a COPY of rows with so many fields.
        """
        text = self._rest + chunk
        at = 0 if self._has_header else self._header_bytes(text)
        if self.is_ended:
            raise _broken()
        if at < 0:
            self._rest = text
            return self._none()
        self._has_header = True
        return self._walked(text, at)

    def _header_bytes(self, text: bytes) -> int:
        """Return the length of the header; -1 where it is not whole yet."""
        if text[: len(_SIGNATURE)] != _SIGNATURE[: len(text)]:
            raise _broken()
        fixed = len(_SIGNATURE) + _NUMBERS_BYTES
        if len(text) < fixed:
            return -1
        whole = fixed + int.from_bytes(text[fixed - 4 : fixed])
        return whole if len(text) >= whole else -1

    def _walked(self, text: bytes, at: int) -> BinaryRows:
        content = Content(text)
        room = (len(text) - at) // (2 + 4 * self._fields) + 1
        starts = np.empty((self._fields, room), dtype=np.int32)
        lengths = np.empty((self._fields, room), dtype=np.int32)
        rows, at, state = _walk(content.bytes, at, starts, lengths)
        if state == _MALFORMED or (state == _ENDED and at + _TRAILER_BYTES != len(text)):
            raise _broken()
        self.is_ended = state == _ENDED
        self._rest = text[at:]
        return BinaryRows(content=content, starts=starts[:, :rows], lengths=lengths[:, :rows])

    def _none(self) -> BinaryRows:
        places = np.empty((self._fields, 0), dtype=np.int32)
        return BinaryRows(content=Content(b""), starts=places, lengths=places)


def _broken() -> TransientError:
    return TransientError("what PostgreSQL sent is not the rows that it was asked for; try again")


@compiled
def _walk(content: UInt8s, at: int, starts: Int32s, lengths: Int32s) -> tuple[int, int, int]:
    """Fill in the places of the fields; return the number of whole rows, their end, and whether more may come."""
    fields, room = starts.shape
    row = 0
    while row < room and len(content) - at >= 2:
        count = int((np.int64(content[at]) << 8) | np.int64(content[at + 1]))
        if count == 0xFFFF:
            return row, at, _ENDED
        if count != fields:
            return row, at, _MALFORMED
        end = _fields_end(content, at + 2, row, starts, lengths)
        if end == -2:
            return row, at, _MALFORMED
        if end < 0:
            break
        row, at = row + 1, end
    return row, at, _MORE


@inlined
def _fields_end(content: UInt8s, at: int, row: int, starts: Int32s, lengths: Int32s) -> int:
    """Note the fields of a row and return their end; -1 where they are not whole, -2 where a length is none."""
    for field in range(starts.shape[0]):
        if len(content) - at < 4:
            return -1
        length = 0
        for _ in range(4):
            length = (length << 8) | int(np.int64(content[at]))
            at += 1
        if length == 0xFFFFFFFF:
            length = -1
        elif length > 0x7FFFFFFF:
            return -2
        if length > len(content) - at:
            return -1
        starts[field, row], lengths[field, row] = at, length
        at += max(length, 0)
    return at
