"""Read the values of a record by column, and encode each so that its table reads what the record is compared by.

PostgreSQL reads some texts otherwise than they are compared: a `timestamp` column drops an offset, an `integer` does
not read `7.0`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import ARRAY, canonical_text, is_own_text, moment_digits
from makewhole.compute.decode.envelopes import require_fields
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.placeholders import is_canonical_placeholder, is_placeholder
from makewhole.compute.structures import json_value, written_json
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import RefusalCode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Read the same by every type of time; an offset other than UTC is not.
_PLAIN_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")


@dataclass(frozen=True, kw_only=True)
class ColumnValue:
    """The value of the source for a column: its declared type, as the record has it (`raw`, decoded JSON with exact
    numbers), and the canonical text that it is compared by."""

    declared: str
    raw: Any
    text: str | None

    @classmethod
    def of_record(cls, raw: Any, declared: str) -> "ColumnValue":
        """Return a field of a record as a value of a declared type."""
        return cls(declared=declared, raw=raw, text=canonical_text(raw, declared))

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for a value that the capture did not send."""
        return is_placeholder(self.raw) or is_canonical_placeholder(self.text)

    @property
    def as_json(self) -> str:
        """The JSON text that a column of the table reads as the canonical text says; of what its type cannot hold, the
        record's own."""
        readable = _readable(self.raw, self.declared, self.text)
        return written_json(readable) if self.declared == "json" else _json(readable)


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


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else json.dumps(str(value))
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def _readable(raw: Any, declared: str, text: str | None) -> Any:
    """Return the JSON value to write: the record's own, where a table reads it as it is compared."""
    if text is None or declared.endswith(ARRAY) or (text.startswith("!") and not is_own_text(declared)):
        return None if text is None else raw
    if declared == "json":
        return json_value(raw)
    if moment_digits(declared) is not None:
        is_plain = isinstance(raw, str) and _PLAIN_MOMENT.fullmatch(raw) and canonical_text(raw, declared) == text
        return raw if is_plain else _moment_of(text) or raw
    if declared in ("string", "char", "inet"):
        return raw if isinstance(raw, dict | list) or _as_jsonb_reads(raw) == text else text
    if declared in ("int", "bigint"):
        return raw if str(raw) == text and not isinstance(raw, bool) else text
    if declared in ("boolean", "date", "uuid"):
        return raw if (raw if isinstance(raw, str) else str(raw).lower()) == text else text
    return raw if canonical_text(raw, declared) == text else text


def _as_jsonb_reads(raw: Any) -> str | None:
    """Return the text that a text column gets from a JSON value."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, int | Decimal):
        text = str(raw if raw else abs(raw))
        return None if "E" in text else text
    return raw if isinstance(raw, str) else None


def _moment_of(microseconds: str | None) -> str | None:
    """Return microseconds since 1970 as a text that every type of time reads the same; None past the year 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=int(microseconds or "!"))).isoformat()
    except (ValueError, OverflowError):
        return None
