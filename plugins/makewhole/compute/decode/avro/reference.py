"""Decode one Avro body by its schema: the reference for many at once.

It takes nothing that the specification does not allow: a length below zero, a branch or a symbol that there is not, a
boolean of another byte than 0 and 1, a number that its type does not hold, bytes behind the value.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from makewhole.compute.decode.avro.schema import MOST_EMPTY, AvroType
from makewhole.compute.decode.json_document import DEEPEST
from makewhole.compute.keys import KeyProblem
from makewhole.compute.placeholders import NUMBERS

_ENDS = "value ends before its schema does"
_MOST_INT = 2**31
_WORD = 2**64


class _Body:
    """A body, and how far it is read."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at, self.depth = content, at, 0
        self.empty, self.most_empty = 0, max(MOST_EMPTY, len(content) - at)

    def enter(self) -> None:
        """Go one level deeper."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise KeyProblem(f"value is nested more than {DEEPEST} deep")

    def take(self, size: int) -> bytes:
        if size < 0:
            raise KeyProblem("value has a length below zero")
        end = self.at + size
        if end > len(self.content):
            raise KeyProblem(_ENDS)
        taken = self.content[self.at : end]
        self.at = end
        return taken

    def long(self) -> int:
        number = shift = 0
        while True:
            if self.at >= len(self.content):
                raise KeyProblem(_ENDS)
            byte = self.content[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise KeyProblem("value has a number of more than 64 bits")
        if number >= _WORD:
            raise KeyProblem("value has a number of more than 64 bits")
        return (number >> 1) ^ -(number & 1)

    def index(self, count: int) -> int:
        number = self.long()
        if not 0 <= number < count:
            raise KeyProblem("value has a branch or a symbol that its schema does not have")
        return number

    def block(self, *, has_bytes: bool = True) -> int:
        """Return the number of items in the next block, 0 at the end. `has_bytes`: each has at least one; of others
        there are at most as many as a body has bytes, and `MOST_EMPTY` in any."""
        count = self.long()
        if count < 0:
            count = -count
            if self.long() < 0:
                raise KeyProblem("value has a length below zero")
        if has_bytes:
            if count > len(self.content) - self.at:
                raise KeyProblem(_ENDS)
            return count
        self.empty += count
        if self.empty > self.most_empty:
            raise KeyProblem(f"value has more than {MOST_EMPTY} items without bytes")
        return count


_Read = Callable[[_Body], Any]


class AvroReader:
    """Decodes bodies of one schema."""

    def __init__(self, schema: AvroType) -> None:
        self._readers: dict[int, _Read] = {}
        self._read = self._reader(schema)

    def document(self, value: bytes, start: int) -> dict[str, Any]:
        """Decode the body that begins at `start` to its fields.

        Raises:
            KeyProblem: it is none of the schema, or no record.
        """
        body = _Body(value, start)
        try:
            document = self._read(body)
        except UnicodeDecodeError:
            raise KeyProblem("value is not valid UTF-8") from None
        except RecursionError:
            raise KeyProblem("value is nested more deeply than it can be read") from None
        if body.at != len(value):
            raise KeyProblem("value goes on behind what its schema describes")
        if not isinstance(document, dict):
            raise KeyProblem("value is not a record")
        return document

    def _reader(self, kind: AvroType) -> _Read:
        if id(kind) not in self._readers:
            self._readers[id(kind)] = lambda body: self._readers[id(kind)](body)  # where it contains itself
            self._readers[id(kind)] = self._made(kind)
        return self._readers[id(kind)]

    def _made(self, kind: AvroType) -> _Read:
        if kind.is_simple:
            return _simple(kind)
        inner = [self._reader(part) for part in kind.inner]
        if kind.kind == "union":
            return lambda body: inner[body.index(len(inner))](body)
        if kind.kind == "record":
            return _record(kind.names, inner)
        return _array(inner[0], kind.inner[0]) if kind.kind == "array" else _map(inner[0])


# Each reads what is in it in its own frame: Python's limit of calls has to hold values that are `DEEPEST` deep.


def _record(names: Sequence[str], inner: Sequence[_Read]) -> _Read:
    fields = list(zip(names, inner, strict=True))

    def read_record(body: _Body) -> dict[str, Any]:
        body.enter()
        record = {}
        for name, read in fields:
            record[name] = read(body)
        body.depth -= 1
        return record

    return read_record


def _array(read: _Read, kind: AvroType) -> _Read:
    unsent, has_bytes = _placeholder(kind), kind.has_bytes()

    def read_array(body: _Body) -> list[Any]:
        body.enter()
        items: list[Any] = []
        while count := body.block(has_bytes=has_bytes):
            for _ in range(count):
                items.append(read(body))
        body.depth -= 1
        return NUMBERS if items == unsent else items

    return read_array


def _placeholder(items: AvroType) -> list[Any] | None:
    """Return how the placeholder for an array of numbers would be read by the type of its items; None: as it is."""
    item = items.counted_type()
    return None if item is None else [item.json_value(number) for number in NUMBERS]


def _map(read: _Read) -> _Read:
    def read_map(body: _Body) -> dict[str, Any]:
        body.enter()
        members: dict[str, Any] = {}
        while count := body.block():
            for _ in range(count):
                name = body.take(body.long()).decode()
                members[name] = read(body)
        body.depth -= 1
        return members

    return read_map


def _simple(kind: AvroType) -> _Read:
    read = _raw(kind)
    is_plain = kind.logical is None and kind.kind in ("boolean", "int", "long", "string")
    return read if is_plain else lambda body: kind.json_value(read(body))


def _raw(kind: AvroType) -> _Read:
    readers: dict[str, _Read] = {
        "null": lambda _: None,
        "boolean": _boolean,
        "int": _int,
        "long": _Body.long,
        "float": lambda body: struct.unpack("<f", body.take(4))[0],
        "double": lambda body: struct.unpack("<d", body.take(8))[0],
        "bytes": lambda body: body.take(body.long()),
        "string": lambda body: body.take(body.long()).decode(),
        "fixed": lambda body: body.take(kind.size),
        "enum": lambda body: body.index(len(kind.symbols)),
    }
    return readers[kind.kind]


def _boolean(body: _Body) -> bool:
    byte = body.take(1)[0]
    if byte > 1:
        raise KeyProblem("value has a boolean that is neither true nor false")
    return byte == 1


def _int(body: _Body) -> int:
    number = body.long()
    if not -_MOST_INT <= number < _MOST_INT:
        raise KeyProblem("value has a number of more than 32 bits where its schema has an int")
    return number
