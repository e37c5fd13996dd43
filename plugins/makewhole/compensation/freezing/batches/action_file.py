"""Keep the lines of a plan's actions, as its hash is over them and as the journal gets them."""

from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from typing import Any

import numpy as np

from makewhole.lake.local_files import local_file
from makewhole.model.actions import Action
from makewhole.model.closing import ClosingContext

SHOWN = 1_000
"""So many of the first actions, or refusals, of a plan are kept for people to look at."""

_BLOCK_BYTES = 1 << 20


class ActionFile(ClosingContext):
    """The actions of one plan in their order. Close it after use.

    `first` are the first of them; `remedies` counts all by the name of their remedy.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._file = local_file(self._stack)
        self._keys = array("B")
        self._remedies: Counter[str] = Counter()
        self.first: list[Action] = []

    def close(self) -> None:
        """Delete the file."""
        self._stack.close()

    def __len__(self) -> int:
        return self._remedies.total()

    @property
    def remedies(self) -> dict[str, int]:
        """The number of actions of each remedy, by name."""
        return dict(sorted(self._remedies.items()))

    @property
    def keys(self) -> int:
        """The number of distinct keys."""
        digests: Any = np.frombuffer(self._keys, dtype=[("high", "<u8"), ("low", "<u8")])
        return len(np.unique(digests))

    def add(self, action: Action) -> None:
        """Add an action."""
        self._file.write(action.line())
        self._remedies[action.remedy.value] += 1
        self._keys.frombytes(blake2b(action.key_hash.encode(), digest_size=16).digest())
        if len(self.first) < SHOWN:
            self.first.append(action)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of all lines, one after the other."""
        self._file.seek(0)
        while block := self._file.read(_BLOCK_BYTES):
            yield block

    def lines(self) -> Iterator[bytes]:
        """Yield the lines."""
        self._file.seek(0)
        yield from self._file
