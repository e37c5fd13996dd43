"""Find out which rows of a table belong to a window: its own by time, and those of earlier times that came late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from makewhole.journal import windows
from makewhole.journal.results import snapshot_manifests
from makewhole.model.hops import Semantics
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TablePoint
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.tables.reading import ReadPlan, TableView, UnreadableFile
from makewhole.tables.shape import EarlierRows, TimeBounds
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.census import Census, TableCensus, reaches_from

ALL_UNDATED = "all_undated"
"""The entry of a manifest that says: all rows without a time were read, whenever they came."""
MOVED = "moved"
"""The entry of a manifest that says: the window before read the table on another server, whose view of rows means
nothing on this one."""
UNDATED_SINCE = "undated_since"
"""The entry of a manifest that says since which view of the table rows without a time were new."""
EARLIER = "earlier"
"""The entry of a manifest that says which earlier times were read for rows that came late."""
_FILES_LISTED_MOST = 10
_NO_CENSUS = Census(counted=(), earlier=(), incidents=())


@dataclass(frozen=True, kw_only=True)
class TableBounds:
    """The bounds of a table's rows; None for one without time column. `census`: what was counted to find them.
    `is_first`: no window before read the table; `is_moved`: the one before read it on another server."""

    NAMES: ClassVar = (ALL_UNDATED, UNDATED_SINCE, MOVED, EARLIER)
    """The entries of a manifest that say which rows were read besides those of the window's own times."""

    bounds: TimeBounds | None
    census: Census = _NO_CENSUS
    is_first: bool = False
    is_moved: bool = False

    def named(self) -> dict[str, Any]:
        """Return these entries; None: there is none of this name."""
        manifest = self.manifest()
        return {name: manifest.get(name) for name in self.NAMES}

    def manifest(self) -> Mapping[str, Any]:
        """Return what a snapshot's manifest says of rows that came late: the times that were read for them."""
        if self.bounds is None:
            return {}
        seen = self.bounds.seen_before
        return {
            **({ALL_UNDATED: True} if self.is_first or self.is_moved else {UNDATED_SINCE: seen}),
            **({MOVED: True} if self.is_moved else {}),
            EARLIER: [
                {
                    "start": None if rows.start is None else rows.start.isoformat(),
                    "end": rows.end.isoformat(),
                    "seen_before": rows.seen_before,
                }
                for rows in self.bounds.earlier
            ],
        }


def table_bounds(journal: PgConnection, context: WindowContext, point: TablePoint, view: TableView) -> TableBounds:
    """Return the bounds of a table's rows for this window, under the view of the data that it is read by.

    Rows of earlier times belong to it where they came since the window before read the table: as far back as `late`
    says, and further in slices that have more rows than were counted there.
    """
    if point.time is None:
        return TableBounds(bounds=None)
    window, late = context.window, context.pipeline.late
    # Of a view's rows nothing tells when they came: each slice would look as if it had grown.
    census = (
        _NO_CENSUS
        if not view.has_places
        else TableCensus(
            journal=journal,
            view=view,
            window=window,
            point=point,
            late=late,
            has_versions=any(
                hop.semantics is Semantics.UPSERT
                for hop in context.pipeline.hops
                if point.name in (hop.source, hop.target)
            ),
        ).take()
    )
    last, place = previous_window(journal, context), window.places.get(point.name)
    manifest = snapshot_manifests.snapshots(journal, last).get(point.name) if last else None
    undated, earlier = None, list(census.earlier)
    if last is not None and manifest is not None:
        undated = _undated_seen_before(journal, last, point, manifest, place)
        if window.start is not None and late:
            before = snapshot_manifests.seen_at(manifest, place)
            earlier.append(EarlierRows(start=reaches_from(window, late), end=window.start, seen_before=before))
    bounds = TimeBounds(start=window.start, end=window.end, seen_before=undated, earlier=tuple(earlier))
    is_moved = manifest is not None and _server_of(manifest.get(snapshot_manifests.PLACE)) != _server_of(place)
    return TableBounds(bounds=bounds, census=census, is_first=manifest is None, is_moved=is_moved)


def unreadable_files(point: TablePoint, plan: ReadPlan) -> list[Incident]:
    """Return an incident where files of a table cannot be read; none where all can."""
    return _of_files(IncidentKind.UNREADABLE_FILES, point, plan.unreadable)


def left_over_files(point: TablePoint, plan: ReadPlan, now: datetime, max_age: timedelta) -> list[Incident]:
    """Return an incident where files beside those of a table, which no reader takes, are older than anything may be in
    flight (`max_age`); none where there are none."""
    old = [file for file in plan.not_taken if now - file.written > max_age]
    return _of_files(IncidentKind.LEFT_OVER_FILES, point, old, size_bytes=sum(file.size_bytes for file in old))


def _of_files(kind: IncidentKind, point: TablePoint, files: Sequence[UnreadableFile], **more: Any) -> list[Incident]:
    if not files:
        return []
    listed = [
        {"path": file.path, "size_bytes": file.size_bytes, "written": file.written.isoformat()}
        | ({"spoilt": True} if file.is_spoilt else {})
        | ({"gone": True} if file.is_gone else {})
        | ({"snapshot": file.commit} if file.commit else {})
        for file in files[:_FILES_LISTED_MOST]
    ]
    detail = {"files": listed, "number": len(files), **more}
    return [Incident(kind=kind, point=point.name, topic=point.table, topic_id="", detail=detail)]


def counted_wholly(census: Census, plan: ReadPlan) -> Census:
    """Return what was counted of a table; beside files that cannot be read nothing that says how many rows a slice has,
    or that it has fewer than before."""
    if not plan.unreadable:
        return census
    incidents = tuple(incident for incident in census.incidents if incident.kind is not IncidentKind.SLICE_SHRUNK)
    return replace(census, counted=(), incidents=incidents)


def _server_of(place: str | None) -> str:
    """Return the part of a table's place that names its server and its database."""
    return (place or "").rpartition("/")[0]


def _undated_seen_before(
    journal: PgConnection, earlier: Window, point: TablePoint, manifest: Mapping[str, Any], place: str | None
) -> str | None:
    """Return the transaction snapshot since which rows without a time are new, where the window before read the table
    under `manifest`; None: it stood in another place than this one.

    Where it was the first to read the table, its first revision counts: those that came to a later one would be taken
    there for older than the baseline.
    """
    of_revisions = (
        snapshot_manifests.snapshots_before(journal, earlier, point.name) if manifest.get(ALL_UNDATED) else []
    )
    seen = (snapshot_manifests.seen_at(candidate, place) for candidate in (*of_revisions, manifest))
    return next((snapshot for snapshot in seen if snapshot is not None), None)


def previous_window(journal: PgConnection, context: WindowContext) -> Window | None:
    """Return the newest judged revision of the window before this one; None if there is none."""
    return windows.last_judged(journal, context.pipeline.name, context.window.number - 1)
