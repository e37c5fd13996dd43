"""Describe rows that were read by their keys: their texts and values, and rows of ledgers as records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from makewhole.compute.row_filter import TypedTerm


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row: its table (`table_oid` distinguishes partitions), where it lies there (`ctid`; a row that was changed has
    another one) and its whole text as JSON.

    `image` is its exact text and `place` its place, as effects have them, where they were asked for; they take no part
    in comparisons.
    """

    table_oid: int
    ctid: str
    text: str
    image: str | None = field(default=None, compare=False)
    place: str | None = field(default=None, compare=False)


Values = Mapping[str, str | None]
"""Compared column → its value as text, in the column's declared type."""


@dataclass(frozen=True, kw_only=True)
class ValuedRow:
    """A row, its place as snapshots have it, and its compared values."""

    row: TableRow
    place: str
    values: Values


class OutsideReason(StrEnum):
    """Why a row that a system has is none of the table's."""

    UNLISTED = "unlisted"
    """No commit of the table lists its file."""
    TAKEN_OUT = "taken_out"
    """A commit took its file out of the table, or wrote the file again without the row."""
    NOT_IN_HISTORY = "not_in_history"
    """Its file was committed, and the table of now does not come from that commit: it was rolled back, or another
    branch has it."""
    DELETED = "deleted"
    """Its file is in the table, and a delete takes the row away."""


@dataclass(frozen=True, kw_only=True)
class RowOutside:
    """A row of a key that the table does not have, in a file that the system still has: its place, and the commit that
    says why. `operation`: what that commit did."""

    place: str
    reason: OutsideReason
    commit: str | None = None
    operation: str | None = None

    @property
    def text(self) -> str:
        """Why it is outside, for people."""
        by = "a snapshot that is expired" if self.commit is None else f"snapshot {self.commit} ({self.operation})"
        match self.reason:
            case OutsideReason.UNLISTED:
                why = "in a file that no snapshot lists"
            case OutsideReason.TAKEN_OUT:
                why = f"in a file that {by} took out"
            case OutsideReason.NOT_IN_HISTORY:
                why = f"in {by}, from which the table of now does not come"
            case OutsideReason.DELETED:
                why = "deleted in its file"
        return f"{self.place}, {why}"

    def as_evidence(self) -> dict[str, str]:
        """Return what a finding says of it."""
        fields = {
            "place": self.place,
            "reason": self.reason.value,
            "snapshot": self.commit,
            "operation": self.operation,
        }
        return {name: text for name, text in fields.items() if text is not None}


def differing_columns(row: Values, source: Values) -> list[str]:
    """Return the compared columns in which a row differs from the source, in order of their names."""
    return sorted(name for name, text in source.items() if row.get(name) != text)


@dataclass(frozen=True, kw_only=True)
class LedgerReading:
    """Parts of a ledger's rows read as records: the texts of `columns` (name → declared type), and which row of
    several counts: the latest version, or else the first by (time, place) that passes all of `terms`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[TypedTerm, ...] = ()
    takes_latest: bool = False


@dataclass(frozen=True, kw_only=True)
class LedgerRecord:
    """A ledger's row as a record. `key` None: it has none. `timestamp_ms` is from the ledger's time column.

    `compared`: name, declared type and canonical text of the columns that were asked for. `passes`: the row passes the
    filter of its hop.
    """

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: tuple[tuple[str, bytes], ...] = ()
    compared: tuple[tuple[str, str, str | None], ...] = ()
    passes: bool = True
