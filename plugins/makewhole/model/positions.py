"""Describe where the records of a chunk stand in a topic, where a log was last looked at, and places in a record."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
