"""Keep the datasets of a case: an Iceberg table and a folder of files, with the rows that its table has elsewhere."""

import io
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from makewhole.file_stores.local_store import LocalStore
from makewhole.model.places.dataset_place import DatasetPlace
from makewhole.model.points import PointKind, TablePoint
from tests.crash.plan.case_settings import CaseSettings

STORES = ("files", "lake")
"""The names of their points."""
TABLE = "dw.departures"
KEPT = "makewhole.effects"
FILES = ("a.parquet", "b.parquet")
_COLUMNS: Mapping[str, Any] = {"id": pa.string(), "delay": pa.int32(), "loaded_at": pa.timestamp("us", "UTC")}
_SCHEMA = pa.schema(_COLUMNS)
Rows = Sequence[tuple[str, int]]
"""(id, delay) of each row."""


def points() -> Mapping[str, TablePoint]:
    """Return the points of both."""
    return {
        name: TablePoint(
            name=name,
            kind=PointKind.STORE,
            connection=connection,
            table=table,
            key=("id",),
            time="loaded_at",
            dataset=DatasetPlace(format=file_format),
        )
        for name, connection, table, file_format in (
            ("lake", "lake", TABLE, "iceberg"),
            ("files", "folder", "/departures", "parquet"),
        )
    }


def catalog(settings: CaseSettings) -> Catalog:
    """Return the catalogue, as another program than a runner has it."""
    return _catalog(tuple(sorted(settings.catalog().items())))


@cache
def _catalog(properties: tuple[tuple[str, str], ...]) -> Catalog:
    return load_catalog("default", **dict(properties))


def folder(settings: CaseSettings) -> LocalStore:
    """Return the dataset of files."""
    return LocalStore(f"{settings.lake}/departures")


def make(settings: CaseSettings, rows: Rows) -> None:
    """Have both with these rows and nothing else: what plans before have left is gone."""
    own = catalog(settings)
    own.create_namespace_if_not_exists("dw")
    for name in (TABLE, KEPT):
        with suppress(NoSuchTableError):
            own.drop_table(name)
    with suppress(NoSuchNamespaceError):
        own.drop_namespace(KEPT.partition(".")[0])
    shutil.rmtree(settings.lake, ignore_errors=True)
    Path(settings.lake, "warehouse").mkdir(parents=True)
    own.create_table(TABLE, schema=_SCHEMA).append(_table(rows))
    half = len(rows) // 2
    for name, some in zip(FILES, (rows[:half], rows[half:]), strict=True):
        folder(settings).replace(name, _bytes(_table(some)))


def change(settings: CaseSettings, key: str, delays: Sequence[int]) -> None:
    """Have another writer give the rows of a key these values: it writes their files again."""
    own = catalog(settings).load_table(TABLE)
    own.overwrite(_table([(key, delay) for delay in delays]), overwrite_filter=f"id = '{key}'")
    store, left = folder(settings), iter(delays)
    for entry in store.list():
        if "/" in entry.path or not entry.path.endswith(".parquet"):
            continue
        rows = file_rows(settings, entry.path)
        if key in (name for name, _ in rows):
            new = [(name, next(left) if name == key else delay) for name, delay in rows]
            store.replace(entry.path, _bytes(_table(new)))


def file_rows(settings: CaseSettings, path: str) -> list[tuple[str, int]]:
    """Return the rows of a file, in their order."""
    with folder(settings).open(path) as file:
        return essence(pq.read_table(io.BytesIO(file.read())).to_pylist())


def essence(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Return id and delay of rows, in their order."""
    return [(row["id"], row["delay"]) for row in rows]


def _table(rows: Iterable[tuple[str, int]]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "delay": delay} for key, delay in rows], schema=_SCHEMA)


def _bytes(rows: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(rows, content)
    return content.getvalue()
