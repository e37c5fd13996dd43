"""Describe a window: the contiguous piece of a pipeline that is judged and certified as one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from makewhole.model.points import WRITTEN_IF_ANY, KeyType
from makewhole.model.value_types import DECLARED, ValueTypes


class WindowState(StrEnum):
    """The states of a window. Only `certified` closes it."""

    OPEN = "open"
    CERTIFIED = "certified"
    GAPS = "gaps"
    NOT_KNOWN = "not_known"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True, order=True)
class PartitionRange:
    """Offsets `[lo, hi)` of one partition of one topic incarnation.

    `lineage` counts the truncations that were noticed before: the same offset of another lineage is another record.
    `leader_epochs` are those of the range when it was frozen: (epoch, end offset), ascending; empty when not known.
    """

    topic: str
    topic_id: str
    partition: int
    lo: int
    hi: int
    lineage: int = 0
    leader_epochs: tuple[tuple[int, int], ...] = field(default=(), compare=False)

    @property
    def span(self) -> int:
        return self.hi - self.lo


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """Numbers of offsets of a range, by what they were. `span` = the sum of the others, or the read was short.

    `erasures`: records without a value that say that their key was deleted on purpose; written where there are any.
    `elements` are no offsets: the elements with a usable key that records were divided into.
    """

    span: int
    data: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0
    expired: int = 0
    undecodable: int = 0
    erasures: int = field(default=0, metadata=WRITTEN_IF_ANY)
    elements: int = field(default=0, metadata=WRITTEN_IF_ANY)

    @property
    def accounted(self) -> int:
        read = self.data + self.control + self.aborted + self.undecodable + self.erasures
        return read + self.compacted + self.expired

    @property
    def is_complete(self) -> bool:
        return self.span == self.accounted

    def __add__(self, other: "Accounting") -> "Accounting":
        return Accounting(
            span=self.span + other.span,
            data=self.data + other.data,
            control=self.control + other.control,
            aborted=self.aborted + other.aborted,
            compacted=self.compacted + other.compacted,
            expired=self.expired + other.expired,
            undecodable=self.undecodable + other.undecodable,
            erasures=self.erasures + other.erasures,
            elements=self.elements + other.elements,
        )

    def to_json_dict(self) -> dict[str, int]:
        """Return the numbers by name; documents without erasures or elements are as they were before there were any."""
        return {name: count for name, count in vars(self).items() if count or name not in ("erasures", "elements")}


@dataclass(frozen=True, kw_only=True)
class Window:
    """One revision of a window.

    `start`/`end` label it and bound the rows of tables by their time column, half-open; `start` None is the beginning
    of time (the first window of `start: earliest`). `ranges` per topic point decide membership. `opened_at` is when the
    bounds were frozen (S1). `key_layout`: the types by which keys are read, by point; `value_types`: those of columns;
    frozen as well. `places`: what the place of each point was when it was opened. `former_filters`: by hop the `where`
    of the windows before (empty: none), where the file has another one since.
    """

    pipeline: str
    number: int
    revision: int
    start: datetime | None
    end: datetime
    opened_at: datetime
    ranges: Mapping[str, tuple[PartitionRange, ...]]
    state: WindowState = WindowState.OPEN
    reason: str | None = None
    key_layout: Mapping[str, tuple[KeyType, ...]] = field(default_factory=dict)
    value_types: ValueTypes = DECLARED
    places: Mapping[str, str] = field(default_factory=dict)
    former_filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """The path of its files, below the storage root."""
        return f"{self.pipeline}/window={self.number}/revision={self.revision}"

    @property
    def last_before(self) -> int:
        """The last of its revisions that came before it is judged; 0: there is none."""
        return self.revision - 1

    @property
    def label(self) -> str:
        return f"{self.pipeline} window {self.number} (revision {self.revision})"


@dataclass(frozen=True, kw_only=True)
class TimeSlice:
    """The rows of a table with times `[start, end)`: those of the window of this number. `start` None: from the
    beginning."""

    window: int
    start: datetime | None
    end: datetime


@dataclass(frozen=True, kw_only=True)
class CountedSlice:
    """A slice with the number of its rows."""

    slice: TimeSlice
    rows: int


@dataclass(frozen=True, kw_only=True)
class KnownSlice:
    """A slice of an earlier window as it was counted last: under `pg_snapshot`, at `counted_at`, by the window
    `counted_by`.

    `rows` None: it was never counted, and `pg_snapshot` is the one under which its window read it. `pg_snapshot` None:
    the table stood in another place then, and nothing tells which of its rows came since.
    """

    slice: TimeSlice
    rows: int | None
    pg_snapshot: str | None
    counted_by: int
    counted_at: datetime
