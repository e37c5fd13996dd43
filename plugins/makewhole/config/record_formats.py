"""Read the format of a topic's record keys, and check that its places are in records of its formats."""

from collections.abc import Iterator

from yaml import MappingNode, ScalarNode

from makewhole.config import values
from makewhole.config.key_types import KeyDraft
from makewhole.config.places.columns import ColumnsDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.config.value_schema import FORMAT_KEYS, read_schema
from makewhole.model.points import (
    EVENT_FORMATS,
    KEYS_WITH_FIELDS,
    RECORD_KEYS,
    WHOLE_FORMATS,
    WITH_SCHEMA,
    ValueSchema,
)

_RECORD_KEY, _EVENT = "kafka.key", "event:"


def read_record_key(section: Section, of_values: ValueSchema | None) -> tuple[str | None, ValueSchema | None]:
    """Return the format of a topic's record keys, None where the file does not say one or a wrong one is noted, and
    what describes it, where that is not the registry of the values (`of_values`)."""
    place = section.get("record_key")
    if place is not None and isinstance(place.node, MappingNode):
        return _described(place.section())
    named = place.text(record_key_format) if place else None
    if place is not None and named in WITH_SCHEMA and (of_values is None or of_values.registry is None):
        place.complain(
            f"is {named}, and no registry of the values has the schemas of the keys",
            f"Write 'record_key: {{format: {named}, registry: {{connection: ID}}}}' where each key begins with the "
            f"number of its schema, or 'record_key: {{format: {named}, schema: FILE}}' where none does",
        )
    return named, None


def _described(section: Section | None) -> tuple[str | None, ValueSchema | None]:
    if section is None:
        return None, None
    section.only("format", *FORMAT_KEYS[1:])
    place = section.need("format", f"Name the format of the keys: {', '.join(RECORD_KEYS)}")
    named = place.text(record_key_format) if place else None
    return named, None if named is None else read_schema(section, named, "record keys")


def note_places(section: Section, key: KeyDraft | None, value: str, record_key: str | None) -> None:
    """Note the places of a topic's key and version that its records do not have, by the formats of both."""
    for place, part in _places(section, key):
        _check(part, place, value, record_key)


def note_columns(columns: ColumnsDraft, value: str, record_key: str | None) -> None:
    """Note the places of a topic's columns that its records do not have, by the formats of both."""
    for name, part in columns.places.items():
        _check(part, columns.lines[name], value, record_key)


def record_key_format(text: str) -> str:
    """Parse the format of a topic's record keys."""
    if text not in RECORD_KEYS:
        raise values.UnfitError(
            f"{values.shown(text)} is not a format of record keys", values.allowed(text, RECORD_KEYS)
        )
    return text


def _places(section: Section, key: KeyDraft | None) -> Iterator[tuple[YamlPlace, str]]:
    version = section.get_quietly("version")
    if version is not None and isinstance(version.node, MappingNode):
        version = Section(version).get_quietly("field")
    if key is not None:
        yield from ((key.place, part) for part in key.names)
    if version is not None and isinstance(version.node, ScalarNode):
        yield version, version.node.value


def _check(part: str, place: YamlPlace, value: str, record_key: str | None) -> None:
    if part.startswith(f"{_RECORD_KEY}.") and record_key not in KEYS_WITH_FIELDS:
        place.complain(
            f"{part} is a field of the record key, which is read as a text",
            f"Write 'record_key: {KEYS_WITH_FIELDS[0]}' (or {', '.join(KEYS_WITH_FIELDS[1:])}) at the point, or "
            f"'{_RECORD_KEY}' for the key as a whole",
        )
    if part == _RECORD_KEY and record_key == "protobuf":
        place.complain(
            f"{part} is a whole message, and a key is one of its fields", f"Write '{_RECORD_KEY}.' and the field's name"
        )
    if part.startswith(_EVENT) and value not in EVENT_FORMATS:
        place.complain(
            f"{part} is a field of a change event, and the values are {value}",
            f"Write 'value: {EVENT_FORMATS[0]}' at the point, or '$.' for a field of the value",
        )
    if part.startswith("$.") and part != "$.value" and value in WHOLE_FORMATS:
        place.complain(
            f"{part} is no field of a value that is read as a whole",
            f"With 'value: {value}' the one field is '$.value'; a key is in '{_RECORD_KEY}' or 'header:NAME'",
        )
