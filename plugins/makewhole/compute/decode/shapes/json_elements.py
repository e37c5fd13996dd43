"""Divide a JSON record into the elements of an array without building a document: its text around each element's own.

Python's own scanner goes over every byte, so that nothing is divided that `parse_document` refuses. What the two could
see differently is left to the reading of the whole document.
"""

import json.decoder
import re
from collections.abc import Collection
from typing import Any, NoReturn

from makewhole.compute.decode.envelopes import is_envelope
from makewhole.compute.decode.json_document import DEEPEST, is_too_deep
from makewhole.compute.decode.json_layout import Path

_SPACES = re.compile("[ \t\n\r]*")
_MOST_DIGITS = 40
_UNUSUAL = (ValueError, StopIteration, IndexError, RecursionError)


class _UnusualError(ValueError):
    """A record that is left to the reading of the whole document."""


def _refuse(_: Any = None) -> NoReturn:
    raise _UnusualError


def _usual_fraction(text: str) -> None:
    if len(text) > _MOST_DIGITS or "e" in text or "E" in text:
        raise _UnusualError


_decoder: Any = json.JSONDecoder(parse_float=_usual_fraction, parse_constant=_refuse)  # as Any: the stubs lack these
_module: Any = json.decoder
_scan, _scan_text = _decoder.scan_once, _module.scanstring


def json_elements(value: bytes, path: Path, wanted: Collection[str] | None) -> list[bytes] | None:
    """Return the values of a record's elements: JSON with each in place of the array at the path. None: it is left.

    `wanted`: the fields at the top that the values have; None: all.
    """
    try:
        text = value.decode()
        if is_too_deep(text, DEEPEST) or (wanted is not None and path[0] not in wanted):
            return None
        record = _ScannedRecord(text, wanted)
        record.read(path)
        around = record.around()
    except _UNUSUAL:
        return None
    if is_envelope(record.names, wanted or ()):
        return None
    return [text[start:end].join(around).encode() for start, end in record.elements]


class _ScannedRecord:
    """A record while it is read: the names at its top, the places of what is wanted of it, and of its elements."""

    def __init__(self, text: str, wanted: Collection[str] | None) -> None:
        self.text, self.wanted = text, wanted
        self.names = set[str]()
        self.members = list[tuple[int, int]]()
        self.elements = list[tuple[int, int]]()
        self.array = (0, 0)

    def read(self, path: Path) -> None:
        """Go over the whole text. Raises one of `_UNUSUAL` where it is left."""
        end = self._object(self._spaces(0), path, is_top=True)
        if self._spaces(end) != len(self.text):
            raise _UnusualError

    def around(self) -> tuple[str, str]:
        """Return the texts before and behind an element."""
        first, past = self.array
        before = [self.text[start : min(end, first)] for start, end in self.members if start < first]
        behind = [self.text[max(start, past) : end] for start, end in self.members if end >= past]
        return "{" + ",".join(before), ",".join(behind) + "}"

    def _object(self, at: int, path: Path, *, is_top: bool = False) -> int:
        """Return the end of an object that has the array at a path."""
        self._require(at, "{")
        at, is_found = self._spaces(at + 1), False
        while True:
            self._require(at, '"')
            start = at
            name, at = _scan_text(self.text, at + 1, True)
            at = self._spaces(at)
            self._require(at, ":")
            at = self._spaces(at + 1)
            if name == path[0] and is_found:
                raise _UnusualError
            is_found |= name == path[0]
            at = self._value(at, path[1:]) if name == path[0] else _scan(self.text, at)[1]
            if is_top:
                self._note(name, start, at)
            at = self._spaces(at)
            if self.text[at] == "}" and is_found:
                return at + 1
            self._require(at, ",")
            at = self._spaces(at + 1)

    def _note(self, name: str, start: int, end: int) -> None:
        self.names.add(name)
        if self.wanted is None or name in self.wanted:
            self.members.append((start, end))

    def _value(self, at: int, path: Path) -> int:
        return self._object(at, path) if path else self._array(at)

    def _array(self, at: int) -> int:
        self._require(at, "[")
        first, at = at, self._spaces(at + 1)
        is_empty = self.text[at] == "]"
        while not is_empty:
            end = _scan(self.text, at)[1]
            self.elements.append((at, end))
            at = self._spaces(end)
            if self.text[at] == "]":
                break
            self._require(at, ",")
            at = self._spaces(at + 1)
        self.array = first, at + 1
        return at + 1

    def _require(self, at: int, sign: str) -> None:
        if self.text[at] != sign:
            raise _UnusualError

    def _spaces(self, at: int) -> int:
        found = _SPACES.match(self.text, at)
        assert found is not None
        return found.end()
