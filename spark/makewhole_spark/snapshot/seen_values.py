"""Note of which compared columns anything that is read has a value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from makewhole_spark.snapshot.read_piece import PieceRead


_COMPARED = "c:"


@dataclass
class SeenValues:
    """The number of copies that are more than tombstones, and for each compared column whether one has a value of
    it."""

    rows: int = 0
    columns: dict[str, bool] = field(default_factory=dict)

    def add(self, copies: pl.DataFrame) -> None:
        """Note copies of keys, with a column `c:NAME` for each compared one."""
        names = [name for name in copies.columns if name.startswith(_COMPARED)]
        if not names:
            return
        tombstones = int(copies["is_tombstone"].sum()) if "is_tombstone" in copies.columns else 0
        self.rows += len(copies) - tombstones
        for name in names:
            column = name.removeprefix(_COMPARED)
            self.columns[column] = self.columns.get(column, False) or copies[name].null_count() < len(copies)

    @property
    def never(self) -> tuple[str, ...]:
        """The compared columns without any value."""
        return tuple(sorted(name for name, has_any in self.columns.items() if not has_any))


def never_valued(reads: "Iterable[PieceRead]") -> Sequence[str]:
    """Return the columns of which no piece has a value; none where there is nothing but tombstones."""
    absent = [set(read.never_valued) for read in reads if read.with_values]
    return sorted(set.intersection(*absent)) if absent else []
