"""Gather what earlier windows know of the rows of a table that came late, or were changed since."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.keys import hash_hex, hashes_of_hex
from makewhole.journal.key_history import Reported, reported_keys, reported_of_keys
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.snapshot_manifests import LOOKED_AT, says_what_passes
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import can_look_up
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.task import REPORTED
from makewhole_spark.reconcile.bucket.window_files import FilesOfWindows
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.snapshot.census import reaches_from


def already_reported(neighbours: NeighbouringWindows, hop: Hop) -> RowsByBucket:
    """Return the keys (`REPORTED`) of rows that came late to a hop's target, or were changed since, and that an earlier
    window found wrong."""
    reached = reached_windows(neighbours, hop.target)
    reported = (
        reported_keys(neighbours.journal, neighbours.context.window, hop.name, reached[0].number) if reached else ()
    )
    both = chain(reported, _known_from_looks(neighbours, hop))
    return neighbours.by_bucket(f"{hop.slug}/already_reported", map(_frame_of, both), REPORTED)


def _frame_of(reported: Sequence[Reported]) -> pl.DataFrame:
    rows = pl.DataFrame(reported, schema={"key_hash": pl.String, "copies": REPORTED["copies"]}, orient="row")
    return rows.drop_nulls("key_hash").select(*hashes_of_hex(), "copies")


def _known_from_looks(neighbours: NeighbouringWindows, hop: Hop) -> Iterator[list[Reported]]:
    """Yield the keys of the rows that differ from what earlier windows read, as far as any of these reported them."""
    looked = neighbours.manifests[hop.target].get(LOOKED_AT, {}).get(hop.name, {})
    storage, window = neighbours.context.storage, neighbours.context.window
    for frame in storage.parquet_batches(looked.get("files", ()), list(HASH)):
        key_hashes = frame.unique().select(hash_hex().alias("key_hash"))["key_hash"].to_list()
        yield reported_of_keys(neighbours.journal, window, hop.name, key_hashes)


def ledger_files(neighbours: NeighbouringWindows, hop: Hop) -> FilesOfWindows:
    """Return the files of a ledger at a hop's source, by bucket: of the windows whose rows the target was read for
    again; of an event also of those that `late` reaches, of the one before, whose last records may lie behind its end,
    and of earlier revisions. Of versions the row that is gone was deleted."""
    if not can_look_up(neighbours.context.pipeline.points[hop.source]):
        return FilesOfWindows()
    reached, manifests = reached_windows(neighbours, hop.target), list[Mapping[str, Any]]()
    if hop.semantics is Semantics.EVENT:
        reached += windows_before(neighbours)
        manifests += snapshot_manifests.snapshots_before(neighbours.journal, neighbours.context.window, hop.source)
    each = {window.number: window for window in reached}.values()
    manifests += [neighbours.manifests_of(window).get(hop.source, {"files": {}}) for window in each]
    known = (manifest for manifest in manifests if _is_filtered_alike(neighbours, hop, manifest))
    return FilesOfWindows.of(known, neighbours.manifests[hop.source])


def replaced_ledger_files(neighbours: NeighbouringWindows, hop: Hop) -> FilesOfWindows:
    """Return the files of a ledger of events, by bucket, that newer revisions of the windows before replaced: a row may
    have been purged before its window was judged again. Where the ledger has a key index, that knows what they have."""
    pipeline = neighbours.context.pipeline
    is_indexed = hop.source in pipeline.indexed_points()
    if is_indexed or hop.semantics is not Semantics.EVENT or not can_look_up(pipeline.points[hop.source]):
        return FilesOfWindows()
    reached = {
        window.number: window for window in (*reached_windows(neighbours, hop.target), *windows_before(neighbours))
    }
    manifests = (
        manifest
        for window in reached.values()
        if window.revision > 1
        for manifest in snapshot_manifests.snapshots_before(neighbours.journal, window, hop.source)
    )
    known = (manifest for manifest in manifests if _is_filtered_alike(neighbours, hop, manifest))
    return FilesOfWindows.of(known, neighbours.manifests[hop.source])


def _is_filtered_alike(neighbours: NeighbouringWindows, hop: Hop, manifest: Mapping[str, Any]) -> bool:
    """Return whether the files of a ledger say which rows pass the filter of a hop. Where they do not, the key index
    says what is known."""
    if hop.where is None or hop.semantics is Semantics.UPSERT:
        return True
    return says_what_passes(manifest, neighbours.manifests[hop.source], hop.name)


def windows_before(neighbours: NeighbouringWindows) -> list[Window]:
    """Return the windows before this one that `late` reaches, and the one right before it."""
    from_when = reaches_from(neighbours.context.window, neighbours.context.pipeline.late)
    recent = neighbours.recent
    reached = [window for window in recent[:-1] if window.end > from_when]
    return [*reached, *recent[-1:]]


def reached_windows(neighbours: NeighbouringWindows, point: str) -> list[Window]:
    """Return the windows before this one of whose times rows were read with it."""
    spans = [
        (None if span["start"] is None else datetime.fromisoformat(span["start"]), datetime.fromisoformat(span["end"]))
        for span in neighbours.manifests[point].get("earlier", ())
    ]
    return neighbours.windows.in_spans(spans, neighbours.context.window.number)
