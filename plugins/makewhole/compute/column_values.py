"""Read the values of a record by column, and encode each as JSON that its column reads as exactly that value.

The type of the column decides, and not the one that the value is compared by: that one may leave out what the column
holds (the time of a `date`, digits of a second). PostgreSQL reads some texts otherwise than they are compared: a
`timestamp` column drops an offset, an `integer` does not read `7.0`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import ARRAY, canonical_text
from makewhole.compute.decode.envelopes import require_fields
from makewhole.compute.decode.json_document import DEEPEST, is_too_deep
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.moments import days_of, microseconds_of
from makewhole.compute.placeholders import is_canonical_placeholder, is_placeholder
from makewhole.compute.structures import holds_scalar, is_writable, json_value, written_json
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import RefusalCode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MICROSECONDS = 86_400_000_000
# Read the same by every type of time; an offset other than UTC is not.
_PLAIN_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", re.ASCII)
_DAY = re.compile(r"\s*(\d{4,6}-\d\d-\d\d)", re.ASCII)
_PADDED = ("character", "bpchar")
_TEXTS = ("text", "character varying", "citext", "name", *_PADDED)
_JSON = ("json", "jsonb")


@dataclass(frozen=True, kw_only=True)
class ColumnValue:
    """The value of the source for a column: the type that it is compared by, the type of the column without its
    modifier, the value as the record has it (`raw`, decoded JSON with exact numbers), and the canonical text that it is
    compared by. `absent`: the place at which the record has nothing, which is compared as null; None: it has it."""

    declared: str
    column: str
    raw: Any
    text: str | None
    absent: str | None = None

    @classmethod
    def of_record(cls, raw: Any, declared: str, column: str, absent: str | None = None) -> "ColumnValue":
        """Return a field of a record as a value for a column of a type."""
        return cls(declared=declared, column=column, raw=raw, text=canonical_text(raw, declared), absent=absent)

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for a value that the capture did not send."""
        return is_placeholder(self.raw) or is_canonical_placeholder(self.text)

    @property
    def as_json(self) -> str:
        """The JSON text that the column reads as the exact value of the record; of what its type cannot hold, the
        record's own."""
        return _exact_json(self.raw, self.declared, self.column)

    @property
    def expected(self) -> tuple[str, str | None]:
        """The type and the canonical text by which the row is held to the value once it is written: a column of texts
        to the very text."""
        return _expected_text(self.raw, self.declared, self.column, self.text)

    @property
    def why_inexact(self) -> str | None:
        """Why the column cannot be written with what the record says; None: it can be."""
        return _why_inexact(self.raw, self.declared, self.column)


def parse_fields(
    value: bytes | None, wanted: Iterable[str] = (), form: ValueFormat = JSON, headers: Headers = None
) -> Mapping[str, Any]:
    """Return the fields of a record's value in a format, numbers exact. `wanted`: the fields that are read of it.

    Raises:
        RefusedError: it cannot be decoded, or is an envelope that has these fields deeper.
    """
    try:
        fields = form.document(value, headers)
        require_fields(fields, wanted)
    except KeyProblem as problem:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the record's {problem}") from None
    return fields


def as_object(values: Mapping[str, ColumnValue], texts: Mapping[str, str] | None = None) -> bytes:
    """Return values, and texts as they are, as the text of one JSON object, in their order."""
    members = [f"{json.dumps(name)}:{value.as_json}" for name, value in values.items()]
    members += [f"{json.dumps(name)}:{json.dumps(text)}" for name, text in (texts or {}).items()]
    return ("{" + ",".join(members) + "}").encode()


def _exact_json(raw: Any, declared: str, column: str) -> str:
    """Return the JSON text from which a column of this type gets the value of a record; of what it cannot hold, the
    record's own, so that the table refuses it."""
    if raw is None:
        return "null"
    if column in _JSON:
        return written_json(raw if holds_scalar(raw) else json_value(raw))
    if column in _TEXTS:
        return _json(_text(raw, declared))
    if column.endswith(ARRAY) and declared == "json":
        return written_json(json_value(raw))
    return _json(_ENCODED.get(column, _own)(raw, declared))


def _expected_text(raw: Any, declared: str, column: str, text: str | None) -> tuple[str, str | None]:
    """Return the type and the canonical text by which a row is held to a value that was written into it, which has this
    canonical `text` in the declared type. A column of texts has to hold the text itself."""
    if column not in _TEXTS:
        return declared, text
    kind = "char" if column in _PADDED else "string"
    written = None if raw is None else _text(raw, declared)
    return kind, text if isinstance(written, dict | list) else canonical_text(written, kind)


def _why_inexact(raw: Any, declared: str, column: str) -> str | None:
    """Return why a column of this type cannot be written with what a record says; None: it can be."""
    if column == "date" and isinstance(raw, str) and not _is_of_one_day(raw):
        return "the record has a moment that is of another day in its own offset than in UTC, and the column holds days"
    if column in _JSON and holds_scalar(raw):
        return (
            "the record has a text that is itself JSON of one value, and does not say whether the column holds the "
            "text or that value"
        )
    return _why_unwritten(raw) if column in _JSON or (column.endswith(ARRAY) and declared == "json") else None


def _why_unwritten(raw: Any) -> str | None:
    """Return why the JSON that a value is cannot be written; None: it can be."""
    if isinstance(raw, str) and is_too_deep(raw, DEEPEST):
        return f"the record has JSON that is nested more than {DEEPEST} deep"
    return None if is_writable(json_value(raw)) else "the record has a number whose exponent is too large to be written"


def _is_of_one_day(text: str) -> bool:
    """Return whether a day, or a moment, is of one day alone, in UTC and by its own offset; true of no moment."""
    try:
        moment = microseconds_of(text)
    except ValueError:
        return True
    day = _DAY.match(text)
    return moment % _DAY_MICROSECONDS == 0 or (day is not None and days_of(day[1]) == moment // _DAY_MICROSECONDS)


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else json.dumps(str(value))
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def _text(raw: Any, declared: str) -> Any:
    """Return the JSON value for a column of texts: a text as it is, a number or boolean in its plain text, an object or
    array as JSON where it is compared so."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, dict | list):
        return _json(raw) if declared == "json" else raw
    text = canonical_text(raw, "string")
    return raw if _as_jsonb_reads(raw) == text else text


def _as_jsonb_reads(raw: Any) -> str | None:
    """Return the text that a text column gets from a number or boolean of JSON."""
    if isinstance(raw, bool):
        return str(raw).lower()
    text = str(raw if raw else abs(raw))
    return None if "E" in text else text


def _moment(raw: Any, _: str) -> Any:
    if not isinstance(raw, str) or _PLAIN_MOMENT.fullmatch(raw):
        return raw
    return _moment_of(canonical_text(raw, "timestamp")) or raw


def _moment_of(microseconds: str | None) -> str | None:
    """Return microseconds since 1970 as a text that every type of time reads the same; None past the year 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=int(microseconds or "!"))).isoformat()
    except (ValueError, OverflowError):
        return None


def _integer(raw: Any, declared: str) -> Any:
    if isinstance(raw, bool):
        return int(raw) if declared == "boolean" else raw
    text = _canonical(raw, "int")
    return raw if str(raw) == text else text


def _number(raw: Any, _: str) -> Any:
    return _canonical(raw, "int") if isinstance(raw, str) and "$" in raw else raw


def _own(raw: Any, _: str) -> Any:
    """Return a value for a type that reads texts; of a number its plain text."""
    return raw if isinstance(raw, dict | list | str | bool) else canonical_text(raw, "string")


def _canonical(raw: Any, declared: str) -> Any:
    """Return the canonical text of a value in a type; of what is none, the value."""
    text = canonical_text(raw, declared)
    return raw if text is None or text.startswith("!") else text


_ENCODED: Mapping[str, Callable[[Any, str], Any]] = {
    "timestamp with time zone": _moment,
    "timestamp without time zone": _moment,
    "date": lambda raw, _: _canonical(raw, "date"),
    "boolean": lambda raw, _: raw if isinstance(raw, bool) else _canonical(raw, "boolean"),
    "smallint": _integer,
    "integer": _integer,
    "bigint": _integer,
    "numeric": _number,
    "real": _number,
    "double precision": _number,
    "money": _number,
}
