"""Keep records of topics, and the positions of those that are wanted, in flat memory."""

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from makewhole.lake.local_files import ObjectFile
from makewhole.model.closing import ClosingContext

_Numbers = NDArray[np.int64]


class RecordFile(ClosingContext):
    """Records with their topic point, partition and offset; of two at one position the later one counts.

    Sixteen bytes of a record are in memory. Close it after use.
    """

    def __init__(self) -> None:
        self._records = ObjectFile()
        self._added: dict[tuple[str, int], tuple[array[int], array[int]]] = {}
        self._ordered: dict[tuple[str, int], tuple[_Numbers, _Numbers]] = {}
        self._last: tuple[tuple[str, int, int], Any] | None = None

    def close(self) -> None:
        """Delete the file."""
        self._records.close()

    def add(self, point: str, partition: int, offset: int, record: Any) -> None:
        """Add a record."""
        offsets, places = self._added.setdefault((point, partition), (array("q"), array("q")))
        offsets.append(offset)
        places.append(self._records.add(record))
        self._ordered.pop((point, partition), None)
        self._last = None

    def not_added(self, point: str, positions: _Numbers) -> _Numbers:
        """Return those of the positions of a point (a row each: partition, offset) that have no record yet."""
        is_new = np.ones(len(positions), dtype=bool)
        for partition in np.unique(positions[:, 0]).tolist():
            if (point, partition) in self._added:
                wanted = positions[:, 0] == partition
                added, _ = self._in_order(point, partition)
                at = np.searchsorted(added, positions[wanted, 1])
                is_new[wanted] = added[np.minimum(at, len(added) - 1)] != positions[wanted, 1]
        return positions[is_new]

    def find(self, point: str, partition: int, offset: int) -> Any:
        """Return the record at a position; None: there is none."""
        if self._last is None or self._last[0] != (point, partition, offset):
            place = self._place(point, partition, offset)
            if place is None:
                return None
            self._last = (point, partition, offset), self._records.read(place)
        return self._last[1]

    def _place(self, point: str, partition: int, offset: int) -> int | None:
        if (point, partition) not in self._added:
            return None
        offsets, places = self._in_order(point, partition)
        at = int(np.searchsorted(offsets, offset, side="right")) - 1
        return int(places[at]) if at >= 0 and offsets[at] == offset else None

    def _in_order(self, point: str, partition: int) -> tuple[_Numbers, _Numbers]:
        if (point, partition) not in self._ordered:
            offsets, places = (np.array(numbers, dtype=np.int64) for numbers in self._added[point, partition])
            order = np.argsort(offsets, kind="stable")
            self._ordered[point, partition] = offsets[order], places[order]
        return self._ordered[point, partition]


class WantedPositions:
    """Positions (partition, offset) by topic point."""

    def __init__(self) -> None:
        self._numbers: dict[str, array[int]] = {}

    def add(self, point: str, position: tuple[int, int]) -> None:
        """Add a position."""
        self._numbers.setdefault(point, array("q")).extend(position)

    def by_point(self) -> dict[str, NDArray[np.int64]]:
        """Return the positions of each point: a row each, in the order in which they were added."""
        return {name: np.array(numbers, dtype=np.int64).reshape(-1, 2) for name, numbers in self._numbers.items()}
