"""Draw whose clock is wrong, and by how much: of a producer, of the ledger's database, of the loader's."""

from dataclasses import dataclass, replace
from random import Random

from tests.histories.events import Item

_HOUR, _DAY = 60, 24 * 60
FOR_EVER = 10**9
"""Minutes: further than any clock goes. Such a record is of 1970, or as far ahead as the broker takes one."""

_MINUTES = (-FOR_EVER, -3 * _DAY, -_DAY, -_HOUR, -5, 5, _HOUR, _DAY - 30, _DAY, 3 * _DAY, FOR_EVER)


@dataclass
class WrongClocks:
    """Draws from a generator of its own, so that everything else of a history stays as it is without it."""

    random: Random
    is_on: bool

    def of_producer(self) -> int:
        """Return by how many minutes the times of a producer's records are off."""
        return self.random.choice(_MINUTES) if self._is_wrong(0.25) else 0

    def of_row(self, item: Item) -> Item:
        """Return the item as a row of a table has it: of the day before or after where the clock is wrong."""
        return replace(item, day=item.day + self._days()) if self._is_wrong(0.08) else item

    def of_store(self, day: int) -> int:
        """Return the day of which the rows of the store are that are written on `day`."""
        return day + self._days() if self._is_wrong(0.1) else day

    def _days(self) -> int:
        return self.random.choice([-1, 1])

    def _is_wrong(self, probability: float) -> bool:
        return self.random.random() < probability and self.is_on
