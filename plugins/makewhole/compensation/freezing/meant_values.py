"""Say what a row must hold once it is written, and spell the value so that a table reads it as it was judged.

PostgreSQL reads some texts otherwise than they are compared: a `timestamp` column drops an offset, an `integer` does
not read `7.0`. Such fields are written once more behind the others; of two fields of one name the later counts.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.keys import KeyProblem
from makewhole.model.errors import RefusedError
from makewhole.postgres.write.upsert_row import MeantValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Read the same by every type of time; an offset other than UTC is not.
_PLAIN_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")

Moment = Callable[[str], str | None]
"""Read a text as the table's server reads a moment: in UTC, without an offset; None where it cannot."""


@dataclass(frozen=True, kw_only=True)
class RecordValue:
    """A record's value: its text, and the JSON object that it is."""

    text: bytes
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, text: bytes) -> "RecordValue":
        """Parse a value.

        Raises:
            RefusedError: it is not a JSON object.
        """
        try:
            return cls(text=text.removeprefix(_BYTE_ORDER_MARK), fields=parse_document(text))
        except KeyProblem as problem:
            raise RefusedError(f"unfit: the record's {problem}") from None

    def meant(self, compare: Mapping[str, str]) -> tuple[MeantValue, ...]:
        """Return what the compared columns of a row must hold: what the record is judged by. No field: null."""
        return tuple((name, declared, canonical_text(self._at(name), declared)) for name, declared in compare.items())

    def spelled(self, meant: Iterable[MeantValue], zoneless: Sequence[str], moment: Moment) -> bytes:
        """Return the text in which the compared fields, and those of columns without a time zone, are read as meant."""
        changed: dict[str, Any] = {}
        for name, declared, text in meant:
            wanted = _spelling(self._at(name), declared, text)
            if wanted != self.fields.get(name) or type(wanted) is not type(self.fields.get(name)):
                changed[name] = wanted
        compared = {name for name, _, _ in meant}
        for name in zoneless:
            raw = self.fields.get(name)
            if name not in compared and isinstance(raw, str) and not _PLAIN_MOMENT.fullmatch(raw):
                changed[name] = _moment_of(canonical_text(raw, "timestamp")) or moment(raw) or raw
        return self._with(changed)

    def _at(self, path: str) -> Any:
        found: Any = self.fields
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def _with(self, changed: Mapping[str, Any]) -> bytes:
        if not changed:
            return self.text
        head = self.text.rstrip()[:-1].rstrip()
        members = ",".join(f"{json.dumps(name)}:{_json(value)}" for name, value in changed.items())
        return head + (b"," if self.fields else b"") + members.encode() + b"}"


def _json(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _spelling(raw: Any, declared: str, text: str | None) -> Any:
    """Return the JSON value to write for a field: itself, where a table reads it as it is judged."""
    if text is None or text.startswith("!"):
        return None if text is None else raw
    if declared == "timestamp":
        is_plain = isinstance(raw, str) and _PLAIN_MOMENT.fullmatch(raw) and canonical_text(raw, declared) == text
        return raw if is_plain else _moment_of(text) or raw
    if declared == "string":
        return raw if _as_jsonb_reads(raw) == text else text
    if declared in ("int", "bigint"):
        return raw if str(raw) == text and not isinstance(raw, bool) else text
    if declared in ("boolean", "date"):
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
