"""Ask a record whose value is decoded for what stands at its places: fields, its key, headers and coordinates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from makewhole.compute.decode.coordinates import coordinate
from makewhole.compute.decode.record_keys import RecordKeyReader, read_text, utf8_text
from makewhole.compute.decode.value_format import EVENT, Headers
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import UNREADABLE, version_number
from makewhole.model.places.record_paths import path_names
from makewhole.model.points import COORDINATES

RECORD_KEY = "kafka.key"
_path_names = lru_cache(maxsize=1_000)(path_names)  # for each record
NO_COORDINATES: Mapping[str, int] = MappingProxyType({})
_HEADER = "header:"


@dataclass(frozen=True, kw_only=True)
class ReadRecord:
    """A record with the fields of its value. `read_key` reads its key; `coordinates` are by the columns of the log."""

    fields: Mapping[str, Any]
    record_key: bytes | None = None
    headers: Headers = None
    read_key: RecordKeyReader = read_text
    coordinates: Mapping[str, int] = field(default_factory=dict)

    def part(self, place: str) -> Any:
        """Return what stands at a place: a field of its value or of the event that carries it, its key or a field of
        that, a header as a text, or one of its coordinates.

        Raises:
            KeyProblem: there is no such header, or several, a text is no UTF-8, the key cannot be read, or its producer
                numbers no records.
        """
        if place in COORDINATES:
            return coordinate(place, self.coordinates)
        if place.startswith("$."):
            return _value_at(self.fields, place.removeprefix("$"))
        if place.startswith(EVENT):
            return _value_at(self.fields.get(EVENT), f".{place.removeprefix(EVENT)}")
        return self._of_key(place) if is_in_record_key(place) else self._header(place.removeprefix(_HEADER))

    def column(self, place: str) -> Any:
        """Return what stands at the place of a column; null where it does not have it.

        Raises:
            KeyProblem: there are several such headers, a text is no UTF-8, or the key cannot be read.
        """
        return None if self._lacks(place) else self.part(place)

    def has(self, place: str) -> bool:
        """Return whether there is something at a place, be it null: not where an object lacks the name, nor where there
        is no such header."""
        if place.startswith("$."):
            return _has_at(self.fields, place.removeprefix("$"))
        if place.startswith(EVENT):
            return _has_at(self.fields.get(EVENT), f".{place.removeprefix(EVENT)}")
        if place.startswith(f"{RECORD_KEY}.") and self.record_key is not None:
            return _has_at(self.read_key(self.record_key, self.headers), place.removeprefix(RECORD_KEY))
        return not self._lacks(place)

    def version(self, place: str | None) -> Decimal | None:
        """Return the number of its version (see `makewhole.compute.versions`); None: it has none."""
        if place is None or self._lacks(place):
            return None
        try:
            return version_number(self.part(place))
        except KeyProblem:
            return UNREADABLE

    def _lacks(self, place: str) -> bool:
        """Return whether a place is a header that it does not have."""
        name = place.removeprefix(_HEADER)
        return name != place and all(entry["key"] != name for entry in self.headers or ())

    def _of_key(self, place: str) -> Any:
        path = place.removeprefix(RECORD_KEY)
        key = None if self.record_key is None else self.read_key(self.record_key, self.headers)
        if path and key is not None and not isinstance(key, dict):
            raise KeyProblem("record key is no object, and has no field")
        return _value_at(key, path) if path else key

    def _header(self, name: str) -> str | None:
        values = [entry["value"] for entry in self.headers or () if entry["key"] == name]
        if len(values) != 1:
            raise KeyProblem(f"header {name} is {'doubled' if values else 'missing'}")
        return None if values[0] is None else utf8_text(values[0], f"header {name}")


def is_in_record_key(place: str) -> bool:
    """Return whether a place of a record is Kafka's own key, or a field of it."""
    return place == RECORD_KEY or place.startswith(f"{RECORD_KEY}.")


def _value_at(document: Any, path: str) -> Any:
    for name in _path_names(path):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _has_at(document: Any, path: str) -> bool:
    for name in _path_names(path):
        if document is None:  # null, and so is what would be in it
            return True
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True
