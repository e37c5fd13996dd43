"""Guess the format of a topic's values by reading some of them in each."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.schema_texts import PREFIX_BYTES
from makewhole.compute.decode.shapes.prefixed_json import PrefixedJsonFormat
from makewhole.compute.decode.value_format import EVENT, Deletion, ValueFormat
from makewhole.compute.decode.whole_values import JsonInStringFormat
from makewhole.compute.keys import KeyProblem

_FORMATS: Mapping[str, ValueFormat] = {
    "debezium": ChangeEventFormat(),
    "connect": ConnectFormat(),
    "json_schema": PrefixedJsonFormat(),
    "json_in_string": JsonInStringFormat(),
    "json": JSON,
}
"""Formats whose values say what they are; a value of one of the first is JSON, too."""


class GuessedFormat(NamedTuple):
    """A format, and the fields that all values have in it; none are known of one that a schema describes."""

    name: str
    fields: tuple[str, ...] = ()


def guess_format(values: Sequence[bytes]) -> GuessedFormat | None:
    """Return the format in which all values can be read, and one has a field unless they are JSON; None: none is."""
    for name, form in _FORMATS.items():
        rows = [_fields(form, value) for value in values]
        has_fields = any(rows) or (form is JSON and bool(rows))
        if has_fields and all(row is not None for row in rows):
            first, *rest = (row for row in rows if row is not None)
            return GuessedFormat(name, tuple(field for field in first if all(field in row for row in rest)))
    if values and all(value[:1] == b"\0" and len(value) > PREFIX_BYTES for value in values):
        return GuessedFormat("avro")
    return None


def _fields(form: ValueFormat, value: bytes) -> Mapping[str, Any] | None:
    """Return the fields of a value, of a deletion those of the row that was deleted; None: it is none of the format."""
    try:
        row: Mapping[str, Any] | None = form.document(value, None)
    except Deletion as deletion:
        row = deletion.row
    except (KeyProblem, RecursionError):
        return None
    return None if row is None else {name: field for name, field in row.items() if name != EVENT}
