"""Read the formats of a topic's values and record keys, and check that its places are in such records."""

from collections.abc import Iterator
from dataclasses import dataclass

from yaml import ScalarNode

from makewhole.config import values
from makewhole.config.key_types import KeyDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.points import EVENT_FORMATS, KEYS_WITH_FIELDS, RECORD_KEYS, VALUE_FORMATS, WHOLE_FORMATS

_RECORD_KEY, _EVENT = "kafka.key", "event:"


@dataclass(frozen=True, kw_only=True)
class TopicFormats:
    """The formats of a topic's records. `record_key` None: the file does not say one."""

    value: str = "json"
    record_key: str | None = None


def read_formats(section: Section, key: KeyDraft | None) -> TopicFormats:
    """Return the formats of a topic; what is wrong, or does not fit its places, is noted."""
    value, record_key = section.get("value"), section.get("record_key")
    formats = TopicFormats(
        value=(value.text(value_format) if value else None) or "json",
        record_key=record_key.text(record_key_format) if record_key else None,
    )
    for place, part in _places(section, key):
        _check(part, place, formats)
    return formats


def value_format(text: str) -> str:
    """Parse the format of a topic's values."""
    return _word(text, VALUE_FORMATS, "a value format")


def record_key_format(text: str) -> str:
    """Parse the format of a topic's record keys."""
    return _word(text, RECORD_KEYS, "a format of record keys")


def _word(text: str, words: tuple[str, ...], what: str) -> str:
    if text not in words:
        raise values.UnfitError(f"{values.shown(text)} is not {what}", values.allowed(text, words))
    return text


def _places(section: Section, key: KeyDraft | None) -> Iterator[tuple[YamlPlace, str]]:
    version = section.get_quietly("version")
    if key is not None:
        yield from ((key.place, part) for part in key.names)
    if version is not None and isinstance(version.node, ScalarNode):
        yield version, version.node.value


def _check(part: str, place: YamlPlace, formats: TopicFormats) -> None:
    if part.startswith(f"{_RECORD_KEY}.") and formats.record_key not in KEYS_WITH_FIELDS:
        place.complain(
            f"{part} is a field of the record key, which is read as a text",
            f"Write 'record_key: {KEYS_WITH_FIELDS[0]}' (or {', '.join(KEYS_WITH_FIELDS[1:])}) at the point, or "
            f"'{_RECORD_KEY}' for the key as a whole",
        )
    if part.startswith(_EVENT) and formats.value not in EVENT_FORMATS:
        place.complain(
            f"{part} is a field of a change event, and the values are {formats.value}",
            f"Write 'value: {EVENT_FORMATS[0]}' at the point, or '$.' for a field of the value",
        )
    if part.startswith("$.") and part != "$.value" and formats.value in WHOLE_FORMATS:
        place.complain(
            f"{part} is no field of a value that is read as a whole",
            f"With 'value: {formats.value}' the one field is '$.value'; a key is in '{_RECORD_KEY}' or 'header:NAME'",
        )
