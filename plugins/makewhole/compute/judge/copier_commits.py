"""Hold which offsets of a topic the group of a copier has committed, and whether in its transactions or outside them.

A commit covers the offsets from the one before it, of the same partition, up to its own. Where the one before is not
known any more (compaction keeps the newest), it is not known what it covers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

COPIER = "copier"
"""The name under which what is known of a hop's copier is kept beside its result."""

_LISTED = 100
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class OffsetCommit:
    """A commit that stands: the group was to read `hi` next in a partition, and `lo` by the commit before; `lo` None:
    that one is not known any more.

    `producer_id` and `producer_epoch` are of the transaction that the commit was part of: the copies of these offsets
    are in the same transaction. None: it was made outside of any.
    """

    partition: int
    lo: int | None
    hi: int
    producer_id: int | None = None
    producer_epoch: int | None = None
    committed_at_ms: int = -1

    @property
    def is_within(self) -> bool:
        """Return whether it is part of a transaction."""
        return self.producer_id is not None


@dataclass(frozen=True, kw_only=True)
class CopierCommits:
    """The commits of a group in a topic, in the order in which they took effect. `unknown`: why they cannot be read;
    nothing is concluded then. `is_whole`: all commits that the group ever made are known."""

    group: str
    commits: tuple[OffsetCommit, ...] = ()
    is_whole: bool = False
    unknown: str | None = None

    def reaching(self, ranges: Mapping[int, tuple[int, int]]) -> "CopierCommits":
        """Return the commits that cover any of the offsets `[lo, hi)`, by partition, or may do so; with those that set
        the group back over any of them."""
        wanted = (commit for commit in self.commits if _reaches(commit, ranges.get(commit.partition, (0, 0))))
        return replace(self, commits=tuple(wanted))

    def covering(self, partition: int, offset: int) -> list[OffsetCommit]:
        """Return the commits that cover an offset, or may do so: several where the group was set back."""
        of_partition = self._by_partition.get(partition)
        if of_partition is None:
            return []
        commits, lows, highs = of_partition
        return [commits[at] for at in np.flatnonzero((lows <= offset) & (offset < highs))]

    def passed_outside(self, places: Iterable[tuple[int, int]]) -> bool:
        """Return whether it is known of each of these offsets (with its partition) that the group has committed it, and
        always outside of transactions. Of no offset that is not known."""
        covering = [self.covering(*place) for place in places]
        return bool(covering) and all(
            commits and not any(commit.is_within or commit.lo is None for commit in commits) for commits in covering
        )

    def evidence(self, places: Iterable[tuple[int, int]]) -> dict[str, Any]:
        """Return the commits that cover offsets (with their partition), the newest of each, as far as any is known."""
        covering = (self.covering(*place) for place in islice(places, _SHOWN))
        shown = [commit for commits in covering for commit in commits[-_SHOWN:]]
        return {"copier_commits": [asdict(commit) for commit in dict.fromkeys(shown)]} if shown else {}

    @cached_property
    def _by_partition(self) -> dict[int, tuple[list[OffsetCommit], Any, Any]]:
        by_partition: dict[int, list[OffsetCommit]] = {}
        for commit in self.commits:
            by_partition.setdefault(commit.partition, []).append(commit)
        return {
            partition: (
                commits,
                np.array([0 if commit.lo is None else commit.lo for commit in commits], dtype=np.int64),
                np.array([commit.hi for commit in commits], dtype=np.int64),
            )
            for partition, commits in by_partition.items()
        }

    def to_json_dict(self) -> dict[str, Any]:
        """Return what is kept of it with the result of a hop: numbers, and the newest commits one by one."""
        if self.unknown is not None:
            return {"group": self.group, "unknown": self.unknown}
        within = sum(commit.is_within for commit in self.commits)
        return {
            "group": self.group,
            "within": within,
            "outside": len(self.commits) - within,
            "is_whole": self.is_whole,
            "commits": [asdict(commit) for commit in self.commits[-_LISTED:]],
        }


def _reaches(commit: OffsetCommit, wanted: tuple[int, int]) -> bool:
    first, last = sorted((0 if commit.lo is None else commit.lo, commit.hi))
    return first < wanted[1] and last > wanted[0]
