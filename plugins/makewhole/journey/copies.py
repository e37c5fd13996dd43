"""Find the copies of keys: the rows that a table holds now, and what the windows' snapshots kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import polars as pl

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.keys import split_hex, with_hash
from makewhole.compute.normalise import table_frame
from makewhole.journal import windows
from makewhole.journal.results import snapshot_manifests
from makewhole.journey.holding_files import keys_held
from makewhole.lake.storage import Storage
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import TablePoint
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape
from makewhole.tables.tables import Tables

_IDENTITY = (
    "partition",
    "offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "is_aborted",
    "replay_plan",
    "is_tombstone",
)
_COMPARED = "c:"


@dataclass(frozen=True, kw_only=True)
class JourneyCopy:
    """One row or record. `values` are the compared columns as canonical text, nothing else of it is kept.

    `window` and `revision` say which snapshot holds it, None for a row as it is now; `identity` is what the log says of
    a record: position, leader epoch, producer and sequence, whether it was aborted, the plan its lineage header names.
    `excluded_by` names the hops whose `where` it does not pass; None: not known.
    """

    place: str
    time: datetime | None
    values: Mapping[str, str | None]
    window: int | None = None
    revision: int | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    excluded_by: tuple[str, ...] | None = None


def rows_now(tables: Tables, pipeline: Pipeline, point: TablePoint, key: str) -> list[JourneyCopy]:
    """Return every row of the key as it stands now, by time and place.

    Raises:
        ConfigurationError: the table or a column does not exist.
        TransientError: the database does not answer.
    """
    shape = TableShape(point=point, compare=columns_read_at(pipeline, point.name), filters={})
    frames = [
        table_frame(rows, dict(columns_read_at(pipeline, point.name)))[0] for rows in tables.reader(shape).keys([key])
    ]
    return _copies(pl.concat(frames).unique("place")) if frames else []


def copies_in(storage: Storage, manifest: Mapping[str, Any], bucket: str, key_hash: str) -> list[JourneyCopy]:
    """Return the copies of a key in a snapshot, and the tombstones that delete it on purpose, read from the files of
    its bucket alone.

    Raises:
        CorruptionError: a file that the manifest names is not there.
    """
    high, low = split_hex(key_hash)
    files = (files_of_bucket(manifest.get(name, {}), bucket) for name in ("files", "tombstones"))
    frames = [
        frame.filter((pl.col("key_hi") == high) & (pl.col("key_lo") == low))
        for paths in files
        if (frame := storage.read_parquet(paths)) is not None
    ]
    return _copies(_rows_once(pl.concat(frames, how="diagonal"))) if frames else []


def _rows_once(copies: pl.DataFrame) -> pl.DataFrame:
    """Return each row of a table once, as it may have been read twice. At a place in a topic there may be several
    copies: elements of its record."""
    return copies if "offset" in copies.columns else copies.unique("place")


def _copies(frame: pl.DataFrame) -> list[JourneyCopy]:
    order = ["partition", "offset"] if "offset" in frame.columns else ["time", "place"]
    return [
        JourneyCopy(
            place=row["place"],
            time=row["time"],
            values={name.removeprefix(_COMPARED): row[name] for name in row if name.startswith(_COMPARED)},
            identity={name: row[name] for name in _IDENTITY if name in row},
            excluded_by=None if row.get("excluded_by") is None else tuple(row["excluded_by"]),
        )
        for row in frame.sort(order).iter_rows(named=True)
    ]


def with_snapshots(journal: PgConnection, newest: Window) -> Window:
    """Return the newest revision with snapshots: one that broke off early has none, the one before it still does."""
    revisions = (replace(newest, revision=revision) for revision in range(newest.revision, 0, -1))
    return next((window for window in revisions if snapshot_manifests.snapshots(journal, window)), newest)


def read_manifests(journal: PgConnection, window: Window) -> dict[str, dict[str, Any]]:
    """Return the snapshots of a revision by point; of a topic that it could not read whole any more those of the
    revision that could read most of it, as `revision`."""
    own = snapshot_manifests.snapshots(journal, window)
    partial = {name for name, manifest in own.items() if (manifest.get("accounting") or {}).get("expired")}
    fullest = snapshot_manifests.fullest_snapshots(journal, window) if partial else {}
    return {name: fullest.get(name, manifest) if name in partial else manifest for name, manifest in own.items()}


def windows_holding(
    journal: PgConnection, pipeline: Pipeline, storage: Storage, keys: Sequence[str]
) -> dict[str, list[Window]]:
    """Return for each business key the windows whose snapshots hold it, oldest first; none: an empty list."""
    wanted = with_hash(pl.DataFrame({"key": list(dict.fromkeys(keys))}, schema={"key": pl.String})).sort(HASH)
    holders: dict[str, list[Window]] = {key: [] for key in keys}
    for window in reversed(windows.newest(journal, pipeline.name)):
        manifests = read_manifests(journal, with_snapshots(journal, window))
        for key in keys_held(storage, list(manifests.values()), wanted):
            holders[key].append(window)
    return holders
