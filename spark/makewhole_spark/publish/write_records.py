"""Write what changed in a piece of a window: the chosen records that were not published yet, read from the archive, and
the positions of those that were and are not chosen any more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.judge.survivors import SURVIVORS
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.reader import read_range
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.window import PartitionRange
from makewhole.native.arrays import ArrowArray, Int64s
from makewhole.publishing.layout import data_folder
from makewhole.publishing.manifest import SCHEMA, ChunkSizes, PublishedFile, RecordChange
from makewhole.window.context import WindowContext

_RECORD = ("partition", "offset", "timestamp", "key", "value", "headers")
_WRITTEN = ("partition", "offset", "key", "change", "revision")
_POSITION = ("window", "partition", "offset")
_PLACED = (*_POSITION, "key", "change", "revision")


@dataclass(frozen=True, kw_only=True)
class WriteTask:
    """Offsets of one partition. `chosen` are files of positions, `before` the published files of the revisions before
    (`PublishedFile`), `later` and `earlier` those of other windows, whose keys may be published there already; `resent`
    are files of keys that belong to earlier windows; `root` is the folder of the publication, `archive` that of the
    window's records."""

    context: WindowContext
    root: str
    archive: str
    range: PartitionRange
    chosen: tuple[str, ...]
    before: tuple[PublishedFile, ...] = ()
    later: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    resent: tuple[str, ...] = ()

    @property
    def folder(self) -> Storage:
        """The folder of the publication."""
        return Storage(root=self.root, is_shared=True)


@dataclass(frozen=True, kw_only=True)
class WrittenRecords:
    """The files that a task wrote, the number of records of the piece that are published now, and of the keys that a
    later window has published, less those that belong to earlier ones and stay."""

    files: tuple[PublishedFile, ...]
    standing: int
    elsewhere: int


def write_records(task: WriteTask) -> WrittenRecords:
    """Write what changed in a piece.

    Raises:
        CorruptionError: a file, or a record in the archive, is not there.
    """
    chosen = _in_range(task, task.context.storage.read_parquet(task.chosen, list(SURVIVORS)))
    before = standing_rows(task.folder, task.before, task.range)
    added = chosen.join(before, on="offset", how="anti", maintain_order="left")
    not_chosen = before.join(chosen, on="offset", how="anti", maintain_order="left")
    staying = _staying(task, not_chosen)
    withdrawn = not_chosen.join(staying, on="offset", how="anti", maintain_order="left")
    in_later = _standing_keys(task.folder, task.later, pl.concat([added, withdrawn]))
    new = added.join(in_later, on="key", how="anti", maintain_order="left")
    gone = withdrawn.join(in_later, on="key", how="anti", maintain_order="left")
    overtaken = withdrawn.join(in_later, on="key", how="semi", maintain_order="left")
    files = [
        *_withdraw(task, gone),
        *(replace(file, is_sent=False) for file in _withdraw(task, overtaken)),
        *_publish(task, new),
    ]
    standing = len(before) - len(withdrawn) + len(new)
    return WrittenRecords(files=tuple(files), standing=standing, elsewhere=len(added) - len(new) - len(staying))


def _staying(task: WriteTask, rows: pl.DataFrame) -> pl.DataFrame:
    """Return those of some published events that belong to earlier windows, which do not publish them as this one
    has: each stays where it is."""
    resent = task.context.storage.read_parquet(task.resent, ["key"]) if len(rows) else None
    if resent is None:
        return rows.clear()
    own = rows.join(resent, on="key", how="semi")
    return own.join(_standing_keys(task.folder, task.earlier, own), on="key", how="anti")


def _in_range(task: WriteTask, rows: pl.DataFrame | None) -> pl.DataFrame:
    if rows is None:
        return pl.DataFrame(schema=SURVIVORS)
    is_wanted = pl.col("offset").is_between(task.range.lo, task.range.hi, closed="left")
    return rows.filter(is_wanted & (pl.col("partition") == task.range.partition)).sort("offset")


def standing_rows(folder: Storage, files: Sequence[PublishedFile], part: PartitionRange) -> pl.DataFrame:
    """Return the rows (`SURVIVORS`) of a partition's offsets that files of all revisions together publish."""
    paths = [file.path for file in files if file.partition == part.partition]
    rows = folder.read_parquet(paths, list(_WRITTEN))
    if rows is None:
        return pl.DataFrame(schema=SURVIVORS)
    newest = (
        rows.filter(pl.col("offset").is_between(part.lo, part.hi, closed="left"))
        .sort("offset", "revision")
        .unique("offset", keep="last", maintain_order=True)
    )
    return newest.filter(pl.col("change") == RecordChange.PUBLISH.value).select(*SURVIVORS)


def _standing_keys(folder: Storage, paths: Sequence[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Return those of the keys of some rows that files of other windows, with all revisions of these, publish."""
    keys = rows.select("key").unique()
    if keys.is_empty() or not paths:
        return keys.clear()
    parts = [part.join(keys, on="key", how="semi") for part in folder.parquet_batches(paths, list(_PLACED))]
    if not parts:
        return keys.clear()
    newest = pl.concat(parts).sort("revision").unique([*_POSITION], keep="last", maintain_order=True)
    return newest.filter(pl.col("change") == RecordChange.PUBLISH.value).select("key").unique()


def _publish(task: WriteTask, rows: pl.DataFrame) -> Iterator[PublishedFile]:
    """Write the records of positions, in the order of their offsets."""
    if rows.is_empty():
        return
    offsets = rows["offset"].to_numpy()
    file = _new_file(task, RecordChange.PUBLISH, rows, _records(task, offsets, rows["key"].to_arrow()))
    if file.rows != len(rows):
        raise CorruptionError(
            f"{task.context.window.label}: the archive {task.archive} has {file.rows} of the {len(rows)} records of "
            f"partition {task.range.partition} that are to be published; nothing was. Run the window again"
        )
    yield file


def _records(task: WriteTask, offsets: Int64s, keys: ArrowArray) -> Iterator[pa.Table]:
    """Yield the records at these offsets, ascending, with the business keys that they have."""
    archive = ArchiveLog(task.context.storage.uri(task.archive))
    for batch in read_range(archive, task.range, columns=_RECORD).batches():
        read = batch.column("offset").to_numpy()
        at = np.searchsorted(offsets, read)
        is_chosen = np.append(offsets, -1)[np.minimum(at, len(offsets))] == read
        if is_chosen.any():
            yield _table(task, batch.filter(pa.array(is_chosen)), keys.take(pa.array(at[is_chosen])))


def _table(task: WriteTask, records: pa.RecordBatch, keys: ArrowArray) -> pa.Table:
    window, rows = task.context.window, records.num_rows
    columns: Mapping[str, ArrowArray] = {
        "window": pa.repeat(pa.scalar(window.number, pa.int32()), rows),
        "revision": pa.repeat(pa.scalar(window.revision, pa.int32()), rows),
        "change": pa.repeat(pa.scalar(RecordChange.PUBLISH.value), rows),
        "key": keys,
        "record_key": records.column("key"),
        **{name: records.column(name) for name in _RECORD if name != "key"},
    }
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)


def _withdraw(task: WriteTask, rows: pl.DataFrame) -> Iterator[PublishedFile]:
    """Write the positions of records that are withdrawn as they were published, without their values: with Kafka's own
    key, by which a topic forgets them. The archive need not have them any more."""
    if rows.is_empty():
        return
    paths = [file.path for file in task.before if file.change == RecordChange.PUBLISH]
    names = [name for name in SCHEMA.names if name != "value"]
    parts = task.folder.parquet_batches(paths, names)
    records = pl.concat(part.join(rows.select("offset"), on="offset", how="semi") for part in parts)
    newest = records.sort("offset", "revision").unique("offset", keep="last", maintain_order=True)
    changed = newest.with_columns(
        pl.lit(task.context.window.revision).alias("revision"),
        pl.lit(RecordChange.WITHDRAW.value).alias("change"),
        pl.lit(None, dtype=pl.Binary).alias("value"),
    )
    table = changed.select(SCHEMA.names).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(SCHEMA)
    yield _new_file(task, RecordChange.WITHDRAW, rows, iter([table]))


def _new_file(task: WriteTask, change: RecordChange, rows: pl.DataFrame, tables: Iterator[pa.Table]) -> PublishedFile:
    window = task.context.window
    name = f"{change.value}-{task.range.partition:05d}-{rows['offset'][0]:020d}-{uuid4().hex[:12]}.parquet"
    written, sizes = 0, ChunkSizes()
    with task.folder.packed_parquet(f"{data_folder(window.number, window.revision)}/{name}") as file:
        for table in tables:
            file.append(table)
            sizes.add(table)
            written += table.num_rows
    return PublishedFile(
        path=file.path,
        revision=window.revision,
        partition=task.range.partition,
        change=change.value,
        rows=written,
        sha256=file.sha256,
        chunk_rows=sizes.rows,
    )
