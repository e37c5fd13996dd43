"""Datasets of files as a kind of table: what reads and writes those below the paths of a connection."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from makewhole.datasets.files.describe import SYSTEM, changed_since, describe_columns, existing
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.open_dataset import FilesSession
from makewhole.datasets.files.parquet_rows import count_rows
from makewhole.datasets.files.progress import file_progress
from makewhole.datasets.files.reading import FilesReader, HeldListing, files_in_doubt
from makewhole.datasets.files.write.forecast import FilesForecaster
from makewhole.datasets.files.write.write_chunk import FilesWriter
from makewhole.datasets.never_there import DatasetTables
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.file_stores.open_store import FileConnection
from makewhole.model.connection import FolderConnection, HdfsConnection
from makewhole.model.errors import Problem, RefusedError
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint
from makewhole.tables.columns import TableColumns
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.progress import ProgressRows, SinkCommit, SinkGroup, refuse_sink
from makewhole.tables.rows import RowOutside
from makewhole.tables.shape import TableShape, TimeBounds
from makewhole.tables.tables import Ability


@dataclass(frozen=True)
class FileTables(DatasetTables):
    """The datasets of a connection (`Tables`)."""

    connection: FileConnection

    system = SYSTEM
    abilities = frozenset({Ability.REPAIRED, Ability.FILE_PROGRESS})

    def describe_columns(self, shapes: Iterable[TableShape]) -> tuple[Mapping[str, TableColumns], Sequence[Problem]]:
        return describe_columns(self.connection, shapes)

    def changed_since(self, shape: TableShape, seen: str) -> Problem | None:
        return changed_since(self.connection, shape.point, seen)

    @contextmanager
    def session(self, purpose: str) -> Iterator[FilesSession]:
        yield FilesSession(connection=self.connection)

    @contextmanager
    def hold_view(self, shape: TableShape) -> Iterator[HeldListing]:
        yield HeldListing(source=existing(self.connection, shape), shape=shape)

    def reader(self, shape: TableShape, view: str | None = None) -> FilesReader:
        return FilesReader(self.connection, shape, view)

    def estimate_rows(self, point: TablePoint, bounds: TimeBounds | None) -> int:
        source = FileSource(self.connection, point)
        return sum(count_rows(source.store, data) for data in source.files)

    def keys_in_doubt(self, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
        """Return the files without a marker that hold one of the keys. None of the keys is held by them: what a file
        adds changes no row that is there."""
        source, wanted = FileSource(self.connection, shape.point), WantedKeys.of_texts(shape.point, keys)
        return KeysInDoubt(transactions=tuple(files_in_doubt(source, shape.point, wanted)))

    def rows_outside(self, shape: TableShape, keys: Sequence[str]) -> Mapping[str, Sequence[RowOutside]]:
        return {}

    def sink_commit(self, store: TablePoint, sink: SinkGroup) -> SinkCommit:
        refuse_sink(store, sink)

    def read_progress(
        self, store: TablePoint, progress: SinkProgress, topic: str, partitions: Sequence[int]
    ) -> dict[int, ProgressRows]:
        if not progress.is_of_files:
            raise RefusedError("a dataset of files keeps no sink's progress in rows")
        source = FileSource(self.connection, store)
        return file_progress(source, store, topic, partitions, progress.other_topics)

    @contextmanager
    def writer(self, point: TablePoint, purpose: str) -> Iterator[FilesWriter]:
        yield FilesWriter(connection=self.connection, point=point)

    @contextmanager
    def forecaster(self, point: TablePoint) -> Iterator[FilesForecaster]:
        yield FilesForecaster(connection=self.connection, point=point)


def server_of_files(connection: FileConnection) -> object:
    """Return what two connections have in common that lead to the same files."""
    if isinstance(connection, FolderConnection):
        return connection.path
    if isinstance(connection, HdfsConnection):
        return connection.url
    return [connection.settings.get("endpoint_url"), connection.settings.get("region")]
