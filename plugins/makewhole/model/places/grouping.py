"""Describe a hop on which many records become one row: what the row counts, and what it adds up."""

from collections.abc import Mapping
from dataclasses import dataclass

COUNT_TYPE = "bigint"
"""The type of the column that counts records."""
_IDENTITY_TYPE, _EXACT = "string", "bigint"
SUM_DIGITS = 27
"""Digits that an amount or a sum has at most: 10^11 amounts of so many are added within 128 bits."""
POSITION_IDENTITY = "position"
"""The word of a pipeline file for records that are distinguished by where they lie."""
SEQUENCE_IDENTITY = "sequence"
"""The word for a coordinate that can be a key, and no identity."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """How the row of a key is made of all records of the key.

    `identity` is the column by which a record is known that was sent again; None: its position, so that each record
    counts. `counts` is the column of the store with the number of records; None: there is none. `sums` are the columns
    with sums; in a record they hold what is added.
    """

    identity: str | None = None
    counts: str | None = None
    sums: tuple[str, ...] = ()

    @property
    def totals(self) -> tuple[str, ...]:
        """The columns of the row that are held to the records: the number first."""
        return (*(() if self.counts is None else (self.counts,)), *self.sums)

    @property
    def columns_of_records(self) -> Mapping[str, str]:
        """The columns that a record is read for, with their types. What is added is read exactly: the type of a sum
        would round it."""
        identity = {} if self.identity is None else {self.identity: _IDENTITY_TYPE}
        return {**identity, **dict.fromkeys(self.sums, _EXACT)}
