"""Hold what the points of a window are read with, and make the manifest of what was read."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from makewhole.journal.results.snapshot_manifests import FILTER_TYPES, FILTERS, NEVER_VALUED, PLACE, READ_AS, VALUES_OF
from makewhole.key_index.window_run import noted_filters
from makewhole.model.incident import Incident
from makewhole.model.points import Point, has_log, is_by_sequence
from makewhole.model.text import NOT_NUMBERED
from makewhole.model.window import CountedSlice
from makewhole.sql import PgConnection
from makewhole.tables.reading import ReadPlan
from makewhole.window.configuration import judging_sha256, reading_sha256
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier
from makewhole_spark.snapshot.read_piece import MOST_REASONS, PieceRead
from makewhole_spark.snapshot.reuse.decide import Reuse
from makewhole_spark.snapshot.reuse.read_as import read_as
from makewhole_spark.snapshot.seen_values import never_valued
from makewhole_spark.snapshot.value_census import values_sha256


@dataclass(frozen=True, kw_only=True)
class TakenSnapshot:
    """The manifest of a snapshot that is not committed yet, the incidents of what it was taken of, and the slices of a
    table that were counted."""

    manifest: dict[str, Any]
    incidents: list[Incident] = field(default_factory=list)
    counted: Sequence[CountedSlice] = ()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The reading of points by Spark, in at most so many pieces a table, into so many buckets.

    Before Spark works the transaction at the journal is ended: none is held open for as long as that takes. `reuse`: of
    what need not be read again.
    """

    carrier: Carrier
    journal: PgConnection
    context: WindowContext
    parallelism: int
    buckets: int
    reuse: Reuse

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """The digests of the pipeline's file that each manifest keeps."""
        pipeline = self.context.pipeline
        return {"judging_sha256": judging_sha256(pipeline), "reading_sha256": reading_sha256(pipeline)}


def manifest_of(
    reading: Reading, point: Point, taken_at: datetime, reads: list[PieceRead], plan: ReadPlan | None
) -> dict[str, Any]:
    pipeline = reading.context.pipeline
    tombstones = _by_bucket(file for read in reads for file in read.tombstone_files)
    manifest: dict[str, Any] = {
        "point": point.name,
        "kind": point.kind.value,
        "taken_at": taken_at.isoformat(),
        "buckets": reading.buckets,
        "files": _by_bucket(file for read in reads for file in read.files),
        **_not_numbered(point, reads),
        **({"tombstones": tombstones} if pipeline.has_erasures(point.name) else {}),
        "rows": sum(read.rows for read in reads),
        "undecodable": sum(read.undecodable for read in reads),
        "undecodable_because": _because(reads),
        "undecodable_files": sorted(path for read in reads for path in read.undecodable_files),
        "sha256": {path: digest for read in reads for path, digest in read.sha256},
        **reading.digests,
        READ_AS: read_as(reading.context, point, reading.buckets),
        VALUES_OF: values_sha256(pipeline, point.name),
        FILTERS: noted_filters(pipeline, point.name, pipeline.filter_types),
        FILTER_TYPES: dict(pipeline.filter_types),
        "key_layout": [kind.value for kind in point.key_layout],
    }
    if columns := never_valued(reads):
        manifest[NEVER_VALUED] = columns
    if plan is not None:
        manifest["pg_snapshot"] = plan.seen
        manifest[PLACE] = reading.context.window.places.get(point.name)
        manifest["rows_counted"] = sum(read.rows_counted or 0 for read in reads)
    return manifest


def _not_numbered(point: Point, reads: Iterable[PieceRead]) -> dict[str, int]:
    """Return the number of records without the sequence by which a topic's records are known, where there are any."""
    records = sum(read.unnumbered for read in reads) if has_log(point) and is_by_sequence(point.key) else 0
    return {NOT_NUMBERED: records} if records else {}


def _because(reads: Iterable[PieceRead]) -> dict[str, int]:
    """Return how many records or rows were undecodable for each of the most frequent reasons."""
    reasons: Counter[str] = Counter()
    for read in reads:
        reasons.update(dict(read.undecodable_because))
    return dict(reasons.most_common(MOST_REASONS))


def _by_bucket(written: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the paths by bucket, each in the order in which they were written, which is that of the pieces: the names
    of files are drawn, and would put rows into an order of chance."""
    files: dict[str, list[str]] = {}
    for bucket, path in written:
        files.setdefault(bucket, []).append(path)
    return dict(sorted(files.items()))
