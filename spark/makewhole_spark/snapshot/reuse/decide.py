"""Decide which snapshots of a window name the files of an earlier revision, and note of each other why it is read.

A point is shown to be the same by its own system, its files by their hashes, and how it was read by digests. Where one
of these does not show it, the point is read.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from makewhole.journal.results.snapshot_manifests import LOOKED_AT, MARK, NEVER_VALUED, NOT_REUSED, REUSED
from makewhole.journal.retention import removals
from makewhole.model.points import Point, TablePoint, TopicPoint
from makewhole.sql import PgConnection
from makewhole.tables.reading import ReadBefore, TableView
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier
from makewhole_spark.snapshot.accounts import SEQUENCES_BEFORE, sequences_of
from makewhole_spark.snapshot.read_piece import PieceRead
from makewhole_spark.snapshot.reuse.earlier import EarlierSnapshot, earlier_snapshots, points_with_whole_files
from makewhole_spark.snapshot.reuse.read_as import differs_in, read_as
from makewhole_spark.snapshot.reuse.same_log import why_not_same_log
from makewhole_spark.snapshot.table_bounds import TableBounds

logger = logging.getLogger(__name__)
SAME_LOG = "the topic's id, start and leader epochs show that it has the same records"
SAME_ROWS = "the table shows that it has the same rows"

WhyNot = Callable[[EarlierSnapshot], str | None]


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Readings by earlier revisions of a window (`earlier`, by point), for points that are shown to be the same.

    `refused` are the points of which it is not shown, and why.
    """

    carrier: Carrier
    journal: PgConnection
    context: WindowContext
    buckets: int
    earlier: Mapping[str, EarlierSnapshot]
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, carrier: Carrier, journal: PgConnection, context: WindowContext, buckets: int) -> "Reuse":
        """Return it with the newest snapshots that earlier revisions have."""
        snapshots = earlier_snapshots(journal, context)
        return cls(carrier=carrier, journal=journal, context=context, buckets=buckets, earlier=snapshots)

    def topics(
        self, points: Sequence[TopicPoint], before: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, EarlierSnapshot]:
        """Return the snapshots of topics that have the same records still, by point. `before` are the manifests of the
        window before.

        Raises:
            TransientError: the brokers do not answer.
        """

        window = self.context.window
        removed_to = removals.archives_removed_to(self.journal, window.pipeline, window.number)

        def why_not(point: TopicPoint, snapshot: EarlierSnapshot) -> str | None:
            if snapshot.revision <= removed_to:
                return f"the archive of revision {snapshot.revision} was kept as long as the file says, and is removed"
            if snapshot.manifest.get(SEQUENCES_BEFORE) != sequences_of(before.get(point.name, {})):
                return "the window before has other sequences of its producers"
            return why_not_same_log(self.context, point, snapshot.manifest)

        return self._chosen({point.name: (point, partial(why_not, point)) for point in points})

    def tables(
        self, points: Sequence[TablePoint], views: Mapping[str, TableView], bounds: Mapping[str, TableBounds]
    ) -> dict[str, EarlierSnapshot]:
        """Return the snapshots of tables that have the same rows still inside their bounds, by point. `views` of them
        are held.

        Raises:
            TransientError: a system does not answer.
        """

        def why_not(point: TablePoint, snapshot: EarlierSnapshot) -> str | None:
            manifest, now = snapshot.manifest, bounds[point.name]
            if manifest.get(MARK, {}).get("table") is None:
                return "nothing of it shows whether its rows are the same"
            if {name: manifest.get(name) for name in TableBounds.NAMES} != now.named():
                return "other rows may have come late"
            before = ReadBefore(mark=manifest[MARK]["table"], seen=manifest["pg_snapshot"], rows=manifest[MARK]["rows"])
            return views[point.name].why_not_same(now.bounds, before)

        return self._chosen({point.name: (point, partial(why_not, point)) for point in points})

    def _chosen(self, points: Mapping[str, tuple[Point, WhyNot]]) -> dict[str, EarlierSnapshot]:
        known = {name: (self.earlier[name], *of) for name, of in points.items() if name in self.earlier}
        same = dict[str, EarlierSnapshot]()
        for name, (snapshot, point, why_not) in known.items():
            reason = differs_in(snapshot.manifest, read_as(self.context, point, self.buckets)) or why_not(snapshot)
            if reason is None:
                same[name] = snapshot
            else:
                self._refuse(name, reason)
        changed = points_with_whole_files(self.carrier, self.journal, self.context, same)
        for name, path in changed.items():
            if path is not None:
                self._refuse(name, f"{self.context.storage.uri(path)} is not what was written")
        return {name: snapshot for name, snapshot in same.items() if changed[name] is None}

    def _refuse(self, name: str, reason: str) -> None:
        self.refused[name] = reason
        logger.info("%s: %s is read again: %s", self.context.window.label, name, reason)

    def entry(self, point: str, because: str | None = None) -> dict[str, Any]:
        """Return what the manifest of a point says: whose files it names, `because` of what, or why it was read again;
        nothing where no earlier revision has read it."""
        if because is not None:
            return {REUSED: {"revision": self.earlier[point].revision, "because": because}}
        return {NOT_REUSED: self.refused[point]} if point in self.refused else {}


def as_read(snapshot: EarlierSnapshot) -> PieceRead:
    """Return what an earlier reading of a table's rows has written, as the answer of one task: without the rows of keys
    of earlier windows, which each window looks at itself."""
    manifest = snapshot.manifest
    looks = manifest.get(LOOKED_AT, {}).values()
    left_out = {path for look in looks for path in look["files"]}
    return PieceRead(
        files=tuple(
            (bucket, path) for bucket, paths in manifest["files"].items() for path in paths if path not in left_out
        ),
        rows=manifest["rows"] - sum(look["rows"] for look in looks),
        rows_counted=manifest[MARK]["rows"],
        rows_in_slice=manifest[MARK]["in_slice"],
        undecodable=manifest["undecodable"],
        undecodable_because=tuple(manifest["undecodable_because"].items()),
        undecodable_files=tuple(manifest["undecodable_files"]),
        with_values=manifest["rows"],
        never_valued=tuple(manifest.get(NEVER_VALUED, ())),
        sha256=tuple((path, digest) for path, digest in manifest["sha256"].items() if path not in left_out),
    )
