"""Forecast what chunks would do to a dataset of files."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from makewhole.datasets.files.describe import description_of
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.write.chunk_rows import FileChunk, load_rows
from makewhole.datasets.files.write.commit_files import not_written
from makewhole.datasets.files.write.kept_beside import PlanFolder
from makewhole.datasets.files.write.write_chunk import do_each
from makewhole.model.connection import Connection
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import QuarantineRows, RowItem, UpsertRow
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.row_change import RowChange, upserted
from makewhole.tables.rows import TableRow


@dataclass(frozen=True, kw_only=True)
class FilesForecaster:
    """Forecasts chunks (`ChunkForecaster`)."""

    connection: Connection
    point: TablePoint

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        source = FileSource(self.connection, self.point)
        return PlanFolder(store=source.store, plan=plan.plan, target=plan.target).receipts(plan)

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        return set()

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        source = FileSource(self.connection, point)
        kept = PlanFolder(store=source.store, plan=chunk.plan, target=chunk.target)
        rows = load_rows(source, point, chunk, kept, [item.key for item in items])
        refused: dict[int, Refusal] = {}
        changes: dict[int, RowChange] = {}
        for item in items:
            trial, before = rows.trial(), _rows_of_item(rows, item)
            refused |= do_each(trial, [item]) | not_written(trial, is_whole=False)
            changes[item.seq] = _change(trial, item, before)
        unfilled = description_of(rows.schema, point).unfilled
        new = [item for item in items if isinstance(item, UpsertRow) and not item.before and item.seq not in refused]
        empty = Counter(name for item in new for name in unfilled if name not in item.columns)
        chosen = {seq: changes[seq] for seq in choose(refused)}
        return ChunkForecast(refused=refused, changes=chosen, left_empty=dict(empty), locks_table=False)


def _rows_of_item(rows: FileChunk, item: RowItem) -> list[TableRow]:
    return [row.row for row in rows.of_key(item.key, is_exact=isinstance(item, QuarantineRows))]


def _change(rows: FileChunk, item: RowItem, before: Sequence[TableRow]) -> RowChange:
    now = _rows_of_item(rows, item)
    was, after = (tuple(row.text for row in table_rows) for table_rows in (before, now))
    if isinstance(item, UpsertRow) and now != before:
        text = after[0] if before else json.dumps({name: json.loads(after[0])[name] for name in item.columns})
        return upserted(description_of(rows.schema, rows.point), item, was, text)
    aside = [row.text for row in before if row not in now] if isinstance(item, QuarantineRows) else ()
    return RowChange(before=was, after=after, aside=tuple(aside))
