"""Name what can be written to tables, whatever system keeps them: chunks, each with its receipt, all or nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.tables.effects import Effect
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import RowItem
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow

ErasedKeys = Callable[[Sequence[str]], set[str]]
"""Return those of some keys that the table names as erased, as the transaction of a chunk sees it."""
Guard = Callable[[ErasedKeys, Sequence[RowItem]], Mapping[int, Refusal]]
"""Return the refusals of items, by action number, as the transaction of their chunk sees them."""


class TableWriter(Protocol):
    """Writes chunks to the tables of a connection. What a chunk did is kept beside them: its receipt and its effects,
    with the rows as they were."""

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        """Wait for the runner that works on this plan here, refuse new chunks of it from runners with earlier leases,
        and return the receipts of the plan at its target, in order of chunk.

        Raises:
            LeaseLostError: a runner with a later lease has been here.
            CorruptionError: they have holes, or were given for a plan of another content.
        """
        ...

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        """Fence off as `receipts` does, and yield the effects of a plan at a target, the latest first; so many at a
        time.

        Raises:
            LeaseLostError: a runner with a later lease has been here.
            RefusedError: a chunk has a receipt, and effects are missing.
        """
        ...

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        """Apply the items in order and leave their effects and the receipt; a chunk that has one is left as it is.

        `guard` is asked first, in the same transaction. Each item succeeds or is refused by itself; the refusals are
        in the receipt.

        Raises:
            LeaseLostError: a newer runner has been here.
            RefusedError: the table is gone or lost a column that the point names.
            TransientError: a lock was not free, the server went away.
        """
        ...

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        """Count what is kept of a plan at a target. None: this system takes nothing back from what it keeps."""
        ...

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        """Fence off as `receipts` does, and remove the rows that an ended plan moved aside; then, unless these are all
        that goes, its effects, receipts and fence.

        Raises:
            RefusedError: this system takes nothing back from what it keeps.
            PermanentError: the right to remove them is missing.
        """
        ...

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        """Fence off as `receipts` does, and remove what is kept of these actions of an ended plan: effects, and rows
        that were moved aside. Receipts stay. Returns how many rows there were.

        Raises:
            RefusedError: this system takes nothing back from what it keeps.
            PermanentError: the right to remove them is missing.
        """
        ...


class ChunkForecaster(Protocol):
    """Forecasts what chunks would do to a table. None of its requests writes."""

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        """Return the receipts of the plan at its target; none where it was never written to.

        Raises:
            CorruptionError: they do not fit the plan.
        """
        ...

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that the table of a point names as erased now."""
        ...

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        """Forecast the chunk's items, each as if nothing before it had been done.

        Raises:
            RefusedError: the table is gone or lost a column that the point names.
            TransientError: the server does not answer.
        """
        ...
