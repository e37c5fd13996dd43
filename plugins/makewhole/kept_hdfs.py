"""Keep what speaks to HDFS for as long as the process lives, one for the same settings.

The clients of a process share the connections to DataNodes that wait for the next question, and each of these ends with
the client that made it, also in the midst of another one's read. A client that is used once and dropped so makes reads
of others fail: "All DataNodes failed".
"""

import os
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_READ_BY_A_CLIENT = ("HADOOP", "KRB5")  # what the names of variables begin with that say who it is, and where to ask
_KEPT = dict[tuple[int, Hashable, Hashable], Any]()
_SET_ASIDE = list[Any]()  # never asked again, and not ended: others may be in the midst of a read


def kept(settings: Hashable, make: Callable[[], _T]) -> _T:
    """Return what was made for these settings and this environment in this process, made now where nothing was.

    A process that was forked makes its own. Of two threads that make one at once, one has its own dropped before it
    was used.
    """
    environment = frozenset((name, value) for name, value in os.environ.items() if name.startswith(_READ_BY_A_CLIENT))
    mine = (os.getpid(), environment, settings)
    there = _KEPT.get(mine)
    return cast(_T, _KEPT.setdefault(mine, make()) if there is None else there)


def set_aside() -> None:
    """Have the next question asked by a client of its own, over a connection of its own: the one that is kept may be to
    a machine that is gone without a word."""
    while _KEPT:
        _SET_ASIDE.append(_KEPT.popitem()[1])
