"""Find out what earlier windows say of the rows of a table that came late, or were changed since."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES
from makewhole.compute.keys import split_hex
from makewhole.journal.key_history import told_keys
from makewhole.model.pipeline import Hop, TablePoint
from makewhole.model.window import Window
from makewhole_spark.reconcile.buckets import BucketTask
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class LateFacts:
    """Hold what earlier windows know of a hop, by bucket: the keys whose rows they told already, and the files of a
    ledger at its source in the windows whose rows are read again."""

    told: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)
    source_files: Mapping[str, list[str]] = field(default_factory=dict)


def late_facts(neighbours: NeighbouringWindows, hop: Hop) -> LateFacts:
    """Return what is known of the late rows of a hop's target; nothing where none were looked for."""
    reached = _reached_windows(neighbours, hop.target)
    if not reached:
        return LateFacts()
    window, buckets = neighbours.context.window, neighbours.context.pipeline.buckets
    told: dict[str, list[tuple[int, int]]] = {}
    for key_hash in told_keys(neighbours.journal, window, hop.name, reached[0].number):
        high, low = split_hex(key_hash)
        told.setdefault(f"{high % buckets:02d}", []).append((high, low))
    files: dict[str, list[str]] = {}
    if isinstance(neighbours.context.pipeline.points[hop.source], TablePoint):
        for earlier in reached:
            for bucket, paths in neighbours.manifests_of(earlier).get(hop.source, {"files": {}})["files"].items():
                files.setdefault(bucket, []).extend(paths)
    return LateFacts(told=told, source_files=files)


def _reached_windows(neighbours: NeighbouringWindows, point: str) -> list[Window]:
    """Return the windows before this one of whose times rows were read with it."""
    spans = neighbours.manifests[point].get("earlier", ())
    return [window for window in neighbours.earlier if any(_overlaps(window, span) for span in spans)]


def _overlaps(window: Window, span: Mapping[str, Any]) -> bool:
    begins_before = window.start is None or window.start < datetime.fromisoformat(span["end"])
    return begins_before and (span["start"] is None or window.end > datetime.fromisoformat(span["start"]))


def without_told_rows(task: BucketTask, target: pl.DataFrame, in_source: pl.DataFrame) -> pl.DataFrame:
    """Drop the late rows of keys of which an earlier window said already what is wrong; a row of this window's own
    times says something new. `in_source`: the keys that the source has in this window."""
    start = task.context.window.start
    if start is None or not task.told:
        return target
    told = pl.DataFrame(list(task.told), schema=HASHES, orient="row")
    judged_here = pl.concat([in_source.select(HASH), target.filter(pl.col("time") >= start).select(HASH)])
    return target.join(told.join(judged_here, on=HASH, how="anti"), on=HASH, how="anti")
