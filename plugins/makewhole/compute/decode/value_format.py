"""Describe what a format of record values can do: the seam between the bytes of a value and its fields."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import polars as pl
import pyarrow as pa

from makewhole.compute.decode.json_layout import Path
from makewhole.compute.keys import KeyProblem
from makewhole.model.places.record_paths import path_names
from makewhole.native.arrays import Int64s

EVENT = "event:"
"""The name under which a document has the fields of the event that carries its row: no field of a row is called so."""

Headers = Sequence[Mapping[str, Any]] | None
"""The headers of a record: mappings with `key` and `value`."""
DecodedParts = tuple[list[tuple[Int64s, pl.DataFrame]], Int64s]
"""(rows with a frame of the wanted columns, rows that are left)."""


class WantedLeaf(NamedTuple):
    """A leaf by its path of names, and its declared type: that of a compared column, or one of the kinds of keys of
    `makewhole.compute.decode.same_layout`, or its `VERSION`."""

    path: Path
    declared: str


def path_of(place: str) -> Path:
    """Return the path of a place in a value, or in the event that carries it."""
    if place.startswith(EVENT):
        return (EVENT, *path_names(f".{place.removeprefix(EVENT)}"))
    return path_names(place)


class Deletion(KeyProblem):
    """A value that is not null says that its key was deleted, as a tombstone does.

    `row`: the fields that it has of the row that was deleted; None: none.
    """

    def __init__(self, reason: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.row = row


class ValueFormat(Protocol):
    """A format of record values. `has_deletions`: values that are not null can delete, so that every value is read.
    `needs_key`: `decode_together` decodes nothing without the key among what is wanted."""

    @property
    def has_deletions(self) -> bool: ...

    @property
    def needs_key(self) -> bool: ...

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value to its fields, as a JSON object would have them: the reference for `decode_together`.

        Fields are texts, exact numbers (int, Decimal), booleans, None, and dicts and lists of them.

        Raises:
            KeyProblem: it cannot be decoded; the reason that the record is kept with.
            Deletion: it deletes its key.
            TransientError: what describes it cannot be had now.
        """
        ...

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return one value as templates see it: whatever it is, every number a Decimal. Raises as `document`."""
        ...

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode many records at once (columns `value` and `headers`): frames of the wanted columns, and the rows that
        are left to `document`.

        What it decodes is what `document` and the canonical text of the declared type give; it leaves rather than
        guesses. The columns are texts, null where the leaf is null or absent; `version` is its number. `key` never is
        null: a text, or a number as JSON writes it.
        """
        ...

    def encode(self, payload: bytes) -> bytes:
        """Return the value of a record whose fields are those of a JSON object.

        Raises:
            KeyProblem: it does not fit the format; with the reason.
        """
        ...


def with_decimals(value: Any) -> Any:
    """Return a decoded value with every number a Decimal."""
    if isinstance(value, Mapping):
        return {name: with_decimals(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_decimals(inner) for inner in value]
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
