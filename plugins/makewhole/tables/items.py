"""Describe what a chunk does to the rows of keys: rows that are written, moved aside, and put back."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from makewhole.compute.canonical import ARRAY, FLOATING
from makewhole.compute.structures import array_literal
from makewhole.model.actions import PayloadExtra
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.keys import key_components, key_parameters
from makewhole.tables.rows import TableRow

_JSON_SPACE = " \t\n\r"


ExpectedValue = tuple[str, str, str | None]
"""A column, its declared type, and the canonical text that the row must have once it is written."""


@dataclass(frozen=True, kw_only=True)
class RowToWrite:
    """The columns that are written, what the row must hold once it is written, the one of them that gets the moment of
    the write, if any does, and the columns of a new row that stay empty on purpose. `topic`: the name that a new row
    gets where the rows of its table say their topic."""

    columns: tuple[str, ...]
    expected: tuple[ExpectedValue, ...]
    moment: str | None = None
    left: tuple[str, ...] = ()
    topic: str | None = None


@dataclass(frozen=True, kw_only=True)
class UpsertRow(RowToWrite):
    """One action: `value` is a JSON object of what the source has.

    `before` is what the plan saw of the key: nothing for a missing key, one row for a mismatched one.
    """

    seq: int
    key: str
    key_columns: tuple[str, ...]
    value: str
    before: tuple[TableRow, ...]
    expected: tuple[ExpectedValue, ...] = ()

    @property
    def may_insert(self) -> bool:
        """Whether a row of the key is put where there may be none."""
        return not self.before

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Compared columns with their declared types."""
        return tuple([(name, declared) for name, declared, _ in self.expected])

    @property
    def expected_texts(self) -> list[str | None]:
        """Return the texts that the row must have, as `chunk.compared_texts` gives them."""
        return [_comparable(text, declared) for _, declared, text in self.expected]

    def differing(self, texts: Sequence[str | None]) -> list[str]:
        """Return the names of the compared columns of which a row has another text than is expected."""
        pairs = zip(self.compared, self.expected_texts, texts, strict=True)
        return [name for (name, _), expected, text in pairs if expected != text]

    @property
    def size_bytes(self) -> int:
        """Approximate size as part of a statement."""
        return len(self.value) + (len(self.before[0].text) if self.before else 0)

    @property
    def parts(self) -> tuple[str, ...]:
        """Components of the key.

        Raises:
            RefusedError: the table cannot hold such a key.
        """
        return key_components(self.key, self.key_columns)

    @property
    def wanted(self) -> dict[str, str]:
        """Parameters of one row: the value over the key, whose columns a value without them gets from the business key.

        Raises:
            RefusedError: the table cannot hold such a key.
        """
        return {"key": json.dumps(dict(zip(self.key_columns, self.parts, strict=True))), "value": self.value}

    @cached_property
    def as_json(self) -> msgspec.Raw:
        """Item of a statement of many: number, key, value over the key, and the row that the plan saw, if any.

        Made once, so that it may be made while the server is busy.

        Raises:
            RefusedError: the table cannot hold such a key.
        """
        fields: dict[str, object] = {
            "seq": self.seq,
            "value": self.over_key,
            **key_parameters(self.key_columns, self.key),
        }
        if self.expected:
            fields["expected"] = self.expected_texts
        if self.before:
            row = self.before[0]
            fields |= {"table_oid": row.table_oid, "ctid": row.ctid, "row": row.text}
        return msgspec.Raw(msgspec.json.encode(fields))

    @property
    def over_key(self) -> str:
        """The value with the key's columns in front of its own: of two members of one name `jsonb` keeps the later.

        A text that is no JSON object stays none, and the server refuses it.
        """
        value = self.value.lstrip(_JSON_SPACE)
        if not value.startswith("{"):
            return value
        key = msgspec.json.encode(dict(zip(self.key_columns, self.parts, strict=True))).decode()
        own = value[1:]
        comma = "" if own.lstrip(_JSON_SPACE).startswith("}") else ","
        return f"{key[:-1]}{comma}{own}"


def _comparable(text: str | None, declared: str) -> str | None:
    """Return a canonical text as the server compares it (`postgres.canonical.comparable_expression`): a double by its
    bits, whose texts have several spellings, and an array by its own output."""
    if text is None or text.startswith("!"):
        return text
    if declared.endswith(ARRAY):
        return array_literal(text, has_booleans=declared == f"boolean{ARRAY}")
    if declared not in FLOATING:
        return text
    return "\\x" + struct.pack(">d", float(text)).hex()


def not_as_expected(columns: Sequence[str]) -> Refusal:
    """Return the refusal of a row whose columns would hold something else than is expected."""
    return Refusal(
        RefusalCode.UNFIT,
        f"written to this table, {', '.join(columns)} would not hold what the record is compared by (the type "
        "of the column, a trigger or a generated column makes another value of it)",
    )


@dataclass(frozen=True, kw_only=True)
class QuarantineRows:
    """One action: `extras` go, `survivor` (none when the whole key is unexpected) stays."""

    seq: int
    key: str
    survivor: TableRow | None
    extras: tuple[TableRow, ...]
    may_insert = False

    @property
    def size_bytes(self) -> int:
        """Approximate size as part of a statement."""
        return len(self.key) + sum(len(row.text) for row in self.extras)


@dataclass(frozen=True, kw_only=True)
class RestoreRow:
    """One action of an undo: the business key, and the effect that is taken back."""

    seq: int
    key: str
    effect: Effect

    @property
    def may_insert(self) -> bool:
        """Whether a row of the key is put where there may be none."""
        return self.effect.kind in (EffectKind.MOVED, EffectKind.DELETED)

    @property
    def size_bytes(self) -> int:
        """Approximate size as part of a statement."""
        return len(self.effect.before or "") + len(self.effect.after or "")


RowItem = UpsertRow | QuarantineRows | RestoreRow


@dataclass(frozen=True, kw_only=True)
class RowsExtra(PayloadExtra):
    """Fields of the payload of an action on rows. `rows`: those that the key had when they were read."""

    rows: tuple[TableRow, ...]


@dataclass(frozen=True, kw_only=True)
class UpsertExtra(RowsExtra, RowToWrite):
    """Fields of the payload of an upsert. `locks_table`: as in `BeforeUpsert`."""

    locks_table: bool = False


@dataclass(frozen=True, kw_only=True)
class QuarantineExtra(RowsExtra):
    """Fields of the payload that moves rows aside: the first `keeps` of the rows, one or none, stay."""

    keeps: int


@dataclass(frozen=True, kw_only=True)
class RestoreExtra(PayloadExtra):
    """Fields of the payload of an undo: the effect that is taken back."""

    effect: Effect
