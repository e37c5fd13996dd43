"""Add up the processor time of processes and of everything that they started, ended processes included.

The kernel adds the time of a process that ended to its parent's only where the parent waited for it. So all are looked
at again and again, and the last time that was seen of one that is gone counts. Source: proc(5), /proc/pid/stat.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import NamedTuple

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_PARENT, _OWN, _WAITED, _STARTED = 1, slice(11, 13), slice(13, 15), 19  # of the fields behind the name, from 0 on


class Split(NamedTuple):
    """A figure for the Python processes of a tree and for the Java ones."""

    python: float = 0.0
    jvm: float = 0.0

    def plus(self, other: "Split") -> "Split":
        """Return the sum."""
        return Split(self.python + other.python, self.jvm + other.jvm)


class _Key(NamedTuple):
    """A process: the kernel uses its number again, but not with the same start."""

    pid: int
    started: int


@dataclass(frozen=True, kw_only=True)
class _Stat:
    """Holds what the kernel says of a process now: its parent, and the seconds of its own and of children that it
    waited for."""

    key: _Key
    parent: int
    is_java: bool
    own: float
    waited: float


@dataclass
class _Seen:
    """A process as it was last seen. `ended` is the time of descendants that are gone; `unwaited` the part of it that
    was not in the time of children it waited for, and may still come there."""

    last: _Stat
    parent: _Key | None
    ended: Split = field(default_factory=Split)
    unwaited: float = 0.0

    @property
    def total(self) -> Split:
        own = Split(jvm=self.last.own) if self.last.is_java else Split(python=self.last.own)
        return own.plus(self.ended)

    def settle(self, waited: float, gone: Split) -> None:
        """Take in what it waited for since the last look, and the descendants that are gone since: the same ones, but
        for those that it does not wait for, or not yet, and those too short-lived to have been seen."""
        self.ended = self.ended.plus(gone)
        unseen = waited - sum(gone)
        paid = min(max(unseen, 0.0), self.unwaited)
        self.unwaited += max(-unseen, 0.0) - paid
        self.ended = self.ended.plus(Split(python=max(unseen, 0.0) - paid))


@dataclass
class ProcessorTime:
    """The processor time of the trees of some processes up to the last `look`. Who outlives its parent stays in."""

    pids: Sequence[int]
    _seen: dict[_Key, _Seen] = field(default_factory=dict)
    _orphans: Split = field(default_factory=Split)

    def look(self) -> Split:
        """Look at the trees; return their user and system time so far, in seconds."""
        now = _tree(self.pids, self._seen)
        keys = {key.pid: key for key in now}
        gone = self._take_ended(now)
        for key, stat in now.items():
            seen = self._seen.setdefault(key, _Seen(stat, None, Split(python=stat.waited)))
            seen.settle(stat.waited - seen.last.waited, gone.get(key, Split()))
            seen.last, seen.parent = stat, keys.get(stat.parent)
        return reduce(Split.plus, (seen.total for seen in self._seen.values()), self._orphans)

    def _take_ended(self, now: Mapping[_Key, _Stat]) -> dict[_Key, Split]:
        """Take out the processes that have ended; return the time of those whose parent goes on, by the parent."""
        gone: dict[_Key, Split] = {}
        # Children were seen after their parents: so they come first, and a parent that has ended, too, has their time.
        for key in [key for key in reversed(self._seen) if key not in now]:
            ended = self._seen.pop(key)
            ended.settle(0.0, gone.pop(key, Split()))
            if ended.parent in self._seen:
                gone[ended.parent] = gone.get(ended.parent, Split()).plus(ended.total)
            else:
                self._orphans = self._orphans.plus(ended.total)
        return gone


def _tree(roots: Sequence[int], known: Mapping[_Key, _Seen]) -> dict[_Key, _Stat]:
    """Return the processes, those known that there still are, and all below them.

    Each is read after its parent: who ends meanwhile is missing here, and in the parent's time at the next look. The
    other way round it would be in both.
    """
    children: dict[int, list[int]] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdecimal() and (stat := _stat(int(folder.name))) is not None:
            children.setdefault(stat.parent, []).append(stat.key.pid)
    stats: dict[_Key, _Stat] = {}
    pids, waiting = set[int](), [*roots, *(key.pid for key in known)]
    for pid in waiting:  # grows
        stat = _stat(pid) if pid not in pids else None
        if stat is not None and (pid in roots or stat.key in known or stat.parent in pids):
            stats[stat.key] = stat
            pids.add(pid)
            waiting += children.get(pid, [])
    return stats


def _stat(pid: int) -> _Stat | None:
    """Return what the kernel says of a process; None when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    own, waited = (sum(map(int, fields[part])) * _TICK for part in (_OWN, _WAITED))
    return _Stat(
        key=_Key(pid, int(fields[_STARTED])),
        parent=int(fields[_PARENT]),
        is_java=name.startswith("java"),
        own=own,
        waited=waited,
    )
