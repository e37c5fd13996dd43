"""Find rows of keys in files that the table of now does not have, or in which a delete takes them away."""

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl
import pyarrow.parquet as pq
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator

from makewhole.datasets.iceberg.catalog import translated
from makewhole.datasets.iceberg.data_files import ListedFile
from makewhole.datasets.iceberg.files_outside import NO_SPEC, FileOutside, files_outside
from makewhole.datasets.iceberg.left_out.gone_files import reading_lists
from makewhole.datasets.iceberg.predicates import of_keys
from makewhole.datasets.iceberg.read_file import FileRows
from makewhole.datasets.iceberg.reading import Snapshotted
from makewhole.datasets.row_frames import is_of_topics
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.model.errors import MakewholeError, RefusedError
from makewhole.model.points import TablePoint
from makewhole.tables.rows import OutsideReason, RowOutside

_DELETE_TYPE = b"delete-type"
"""Writers put this into what a file of deletes says of itself; no data file has it."""
_SHOWN = 3
_MOST_SNAPSHOTS = 1_000


@dataclass(frozen=True, kw_only=True)
class FoundOutside:
    """Rows of keys in a file outside: the text of the key of each, and the rows with the columns asked
    for. `records`: the number of all rows of the file."""

    of: FileOutside
    listed: ListedFile
    records: int
    keys: pl.Series
    rows: FileRows


def rows_outside(source: Snapshotted, point: TablePoint, keys: Sequence[str]) -> dict[str, list[RowOutside]]:
    """Return where rows of keys are outside, by key: those deleted in a file of the table first, then those in files
    that were taken out, the newest first. Files that cannot be read are left out.

    Raises:
        RefusedError: the files of the warehouse cannot be listed, or the table keeps more snapshots than are read for
            evidence alone.
        TransientError: the catalogue or the storage does not answer.
    """
    snapshots = len(source.table.metadata.snapshots)
    if snapshots > _MOST_SNAPSHOTS:
        raise RefusedError(
            f"rows outside {source.name} are not looked for: it keeps {snapshots:,} snapshots, and at most "
            f"{_MOST_SNAPSHOTS:,} are read; expire old ones"
        )
    by_key: dict[str, list[RowOutside]] = {}
    columns = sorted(point.named_columns)
    for outside in (*_deleted(source, point, keys, columns), *found_outside(source, point, keys, columns)):
        before, after = outside.listed.around_number(source.table.location())
        for key, number in zip(outside.keys, outside.rows.numbers, strict=True):
            places = by_key.setdefault(key, [])
            if len(places) < _SHOWN:
                is_known = outside.listed.added_in is not None
                row = RowOutside(
                    place=f"{before}{number}{after if is_known else ''}",
                    reason=outside.of.reason,
                    commit=None if outside.of.snapshot is None else str(outside.of.snapshot),
                    operation=outside.of.operation,
                )
                places.append(row)
    return by_key


def found_outside(
    source: Snapshotted,
    point: TablePoint,
    keys: Sequence[str],
    columns: Sequence[str],
    reasons: Container[OutsideReason] = tuple(OutsideReason),
) -> Iterator[FoundOutside]:
    """Yield rows of keys, with some columns, in files that the current snapshot does not list for one of these
    reasons."""
    if not keys:
        return
    with translated(source.name), reading_lists(source.table, source.name):
        outside = files_outside(source.table)
    wanted = WantedKeys.of_texts(point, keys)
    where = of_keys(source.schema, point, wanted)
    may_have = _InclusiveMetricsEvaluator(source.schema, where, include_empty_files=True)
    for file in outside:
        if file.reason not in reasons:
            continue
        if file.file.spec_id == NO_SPEC or may_have.eval(file.file):
            yield from _rows_in(source, wanted, columns, file, _listed(file), where)


def _deleted(
    source: Snapshotted, point: TablePoint, keys: Sequence[str], columns: Sequence[str]
) -> Iterator[FoundOutside]:
    wanted = WantedKeys.of_texts(point, keys)
    where = of_keys(source.schema, point, wanted)
    for listed in source.files(where) if keys and source.may_have_deletes else ():
        if listed.deletes:
            of = FileOutside(file=listed.file, reason=OutsideReason.DELETED)
            yield from _rows_in(source, wanted, columns, of, replace(listed, deletes=()), where)


def _listed(file: FileOutside) -> ListedFile:
    snapshot = None if file.reason is OutsideReason.UNLISTED else file.snapshot
    added = snapshot if file.reason is OutsideReason.NOT_IN_HISTORY else None
    return ListedFile(file=file.file, deletes=(), listing=0, added_in=added, sequence=file.sequence)


def _rows_in(
    source: Snapshotted,
    wanted: WantedKeys,
    columns: Sequence[str],
    of: FileOutside,
    listed: ListedFile,
    where: BooleanExpression,
) -> Iterator[FoundOutside]:
    """Yield rows of keys in a file; of one that cannot be read none."""
    # A file that no writer of the table made may have no columns that the table knows.
    with suppress(MakewholeError, ValueError), translated(source.name, listed.file.file_path):
        records = of.file.record_count if of.reason is not OutsideReason.UNLISTED else _records(source, of)
        if records is None:
            return
        for _, rows in source.rows([listed], columns, where):
            kept, own = wanted.among(rows.rows), is_of_topics(rows.rows, wanted.point)
            kept = kept if own is None else kept & own.to_numpy()
            if kept.any():
                these = rows.only(kept)
                texts = key_texts(these.rows, wanted.point)
                yield FoundOutside(of=of, listed=listed, records=records, keys=texts, rows=these)


def _records(source: Snapshotted, of: FileOutside) -> int | None:
    """Return the number of rows of a file; None: it is a file of deletes."""
    with source.table.io.new_input(of.file.file_path).open() as file:
        footer = pq.read_metadata(cast(Any, file))
    return None if _DELETE_TYPE in (footer.metadata or {}) else footer.num_rows
