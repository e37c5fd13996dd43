"""Write tables of any kind by the names that a pipeline's file has for their columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from makewhole.model.points import TablePoint
from makewhole.tables.effects import Effect
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import RowItem
from makewhole.tables.named.names import by_name, items_in_table, named_change
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow
from makewhole.tables.writing import ChunkForecaster, Guard, TableWriter


@dataclass(frozen=True, kw_only=True)
class NamedWriter:
    """A writer of rows whose columns have the names of the file (`TableWriter`). Receipts and effects are of the rows
    as the table has them."""

    writer: TableWriter

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return self.writer.receipts(plan)

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        return self.writer.effects(plan, target, lease_epoch)

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        of_table = items_in_table(point, items) if point.columns else items
        return self.writer.write_chunk(point.in_table, chunk, of_table, guard)

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        return self.writer.kept(plan, target)

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        self.writer.forget(plan, target, lease_epoch, only_rows_aside=only_rows_aside)

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        return self.writer.erase(target, lease_epoch, plan, actions)


@dataclass(frozen=True, kw_only=True)
class NamedForecaster:
    """A forecaster of what chunks do to rows whose columns have the names of the file (`ChunkForecaster`)."""

    forecaster: ChunkForecaster

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return self.forecaster.receipts(plan)

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        return self.forecaster.erased(point.in_table, keys)

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        if not point.columns:
            return self.forecaster.forecast_chunk(point, chunk, items, choose)
        forecast = self.forecaster.forecast_chunk(point.in_table, chunk, items_in_table(point, items), choose)
        changes = {seq: named_change(point, change) for seq, change in forecast.changes.items()}
        return replace(forecast, changes=changes, left_empty=by_name(point, forecast.left_empty))
