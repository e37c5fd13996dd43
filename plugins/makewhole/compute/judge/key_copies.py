"""Hold the copies of the keys that findings are about, row by row: of a key with very many copies, not all at once."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import polars as pl

from makewhole.compute.frames import HASH

CopyFields = dict[str, Any]
FrameRow = Mapping[str, Any]

_MOST_HELD = 1_000  # copies of a key, each of which takes some two KiB as a row
_ROWS_AT_ONCE = 1_000


class KeyCopies:
    """The copies of each wanted key, in the order of the log, or of the places of a table, or as they came."""

    def __init__(self, wanted: pl.DataFrame, frame: pl.DataFrame, *, is_ordered: bool = False) -> None:
        order = ("partition", "offset") if "offset" in frame.columns else ("place",)
        copies = frame.join(wanted.select(HASH), on=HASH, how="semi", maintain_order="left")
        copies = copies if is_ordered else copies.sort(order, maintain_order=True)
        many = copies.group_by(HASH).len().filter(pl.col("len") > _MOST_HELD).select(HASH)
        self._found: dict[tuple[int, int], Sequence[CopyFields]] = {
            (high, low): ManyRows(copies.filter((pl.col("key_hi") == high) & (pl.col("key_lo") == low)))
            for high, low in many.rows()
        }
        few: dict[tuple[int, int], list[CopyFields]] = {}
        rest = copies.join(many, on=HASH, how="anti", maintain_order="left") if len(many) else copies
        for row in rest.iter_rows(named=True):
            few.setdefault((row["key_hi"], row["key_lo"]), []).append(row)
        self._found |= few

    def of(self, row: FrameRow) -> Sequence[CopyFields]:
        """Return the copies of a judged row's key."""
        return self._found.get((row["key_hi"], row["key_lo"]), [])


class ManyRows(Sequence[CopyFields]):
    """The rows of a frame, made one by one whenever they are asked for."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __len__(self) -> int:
        return len(self._frame)

    @overload
    def __getitem__(self, at: int) -> CopyFields: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[CopyFields]: ...

    def __getitem__(self, at: int | slice) -> CopyFields | Sequence[CopyFields]:
        return ManyRows(self._frame[at]) if isinstance(at, slice) else self._frame.row(at, named=True)

    def __iter__(self) -> Iterator[CopyFields]:
        return self._frame.iter_rows(named=True, buffer_size=_ROWS_AT_ONCE)
