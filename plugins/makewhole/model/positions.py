"""Describe where the records of a chunk stand in a topic, where a log was last looked at, places in a record, and which
columns of a dataset say where its rows came from."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

FORMATS = ("iceberg", "parquet")
"""The formats of datasets, as a pipeline file names them."""
TABLE_FORMATS = ("iceberg",)
"""Those that a catalogue knows by a name; others are known by a path."""


_PLAIN = r"[A-Za-z_][A-Za-z0-9_-]*"
_QUOTED = r"(?:[^'\\\x00-\x1f]|\\['\\])+"
STEPS = rf"(?:\.{_PLAIN}|\.?\['{_QUOTED}'\])"
"""The pattern of a step of a path: `.name`, or `['any name']`, where a backslash stands before a quotation mark and
before itself."""
_STEP = re.compile(rf"\.({_PLAIN})|\.?\['({_QUOTED})'\]")


@dataclass(frozen=True, kw_only=True)
class RecordPositions:
    """Positions of records that compensation wrote to one topic: three columns of equal length, in any order.

    `seqs` are the numbers of the actions in their plan.
    """

    seqs: Sequence[int]
    partitions: Sequence[int]
    offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.seqs)


@dataclass(frozen=True, kw_only=True)
class PositionSpan:
    """Offsets `[lo, hi)` of partitions `first` to `last` (included) of a topic incarnation; None: no bound."""

    topic_id: str
    first: int
    last: int | None
    lo: int
    hi: int | None


@dataclass(frozen=True, kw_only=True)
class SeenLog:
    """A topic as it was seen once: stable offsets by partition. `topic_id` None: not known, of whatever exists now."""

    topic_id: str | None
    offsets: Mapping[int, int] = field(default_factory=dict)


def path_names(path: str) -> tuple[str, ...]:
    """Return the names of the steps of a path, which begins at its first step: `.a['b c'].d`."""
    steps = (plain or re.sub(r"\\(.)", r"\1", quoted) for plain, quoted in _STEP.findall(path))
    return tuple(steps)


def written_path(names: Sequence[str]) -> str:
    """Return the one spelling of a path of these names."""
    return "".join(f".{name}" if re.fullmatch(_PLAIN, name) else f".['{_escaped(name)}']" for name in names)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


@dataclass(frozen=True, kw_only=True)
class DatasetPlace:
    """The format of a dataset, and the columns that say from where each row came: `partition` and `offset` of its
    record, and its `topic` where rows of other topics may lie beside them. A part of a column is named behind a dot.

    `of_topics` are the names of the topics that lead into it: a row of another topic is none of the point's. Empty:
    all rows are. `marker`: the name of the file in whose folder files count; empty: every file that has its name does.
    """

    format: str
    partition: str | None = None
    offset: str | None = None
    topic: str | None = None
    of_topics: tuple[str, ...] = ()
    marker: str = field(default="", metadata={"in_document": "if any"})

    @property
    def position(self) -> tuple[str, ...]:
        """The columns with partition and offset; empty where rows carry none."""
        return () if self.partition is None or self.offset is None else (self.partition, self.offset)

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Every column that it names."""
        return tuple(name for name in (self.partition, self.offset, self.topic) if name is not None)

    def renamed(self, rename: Callable[[str], str]) -> "DatasetPlace":
        """Return the same with other names for its columns."""
        new = {name: rename(name) for name in self.named_columns}
        return replace(
            self,
            partition=new.get(self.partition or ""),
            offset=new.get(self.offset or ""),
            topic=new.get(self.topic or ""),
        )
