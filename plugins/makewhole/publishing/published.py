"""Report what is published of a pipeline: which windows, where, and up to which one nothing is left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.file_system import path_below
from makewhole.journal import publications
from makewhole.journal.publications import Publication, PublishedWindow
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window
from makewhole.publishing.layout import manifest_path
from makewhole.sql import PgConnection

MOST_REPORTED = 100
"""How many windows of a point an event describes, those that were published last: Airflow stores it, and shows all of
it."""


@dataclass(frozen=True, kw_only=True)
class PublishedPoint:
    """Publications of a point, in the order in which it was: every revision that is visible."""

    publication: Publication
    windows: Sequence[PublishedWindow]

    @property
    def newest(self) -> dict[int, PublishedWindow]:
        """The newest published revision of each window, by number."""
        return {row.number: row for row in sorted(self.windows, key=lambda row: (row.number, row.revision))}

    @property
    def complete_through(self) -> int | None:
        """The last window up to which each one is published, as far as its topic, and proven, from the first on; None:
        not even the first."""
        proven = {number for number, row in self.newest.items() if row.revocation is None and self.is_sent(row)}
        first = self.publication.first_window
        through = next(at for at in range(first - 1, first + len(proven)) if at + 1 not in proven)
        return through if through in proven else None

    @property
    def revoked(self) -> list[int]:
        """The windows of which what is published last is not proven any more."""
        return [number for number, row in self.newest.items() if row.revocation is not None]

    def is_sent(self, window: PublishedWindow) -> bool:
        """Return whether a topic has all of a window; True where nothing is sent into any."""
        return not self.publication.topic or window.first_chunk + window.chunks <= self.publication.sent_chunks

    def whole(self, window: Window) -> PublishedWindow | None:
        """Return a revision of a window as it is published; None: it is not, or a topic does not have all of it."""
        own = (row for row in self.windows if (row.number, row.revision) == (window.number, window.revision))
        return next((row for row in own if self.is_sent(row)), None)

    def manifest_uri(self, window: PublishedWindow) -> str:
        """Return the full name of the manifest of a window."""
        return path_below(self.publication.root, manifest_path(window.number, window.revision))


def published_points(journal: PgConnection, pipeline: str) -> list[PublishedPoint]:
    """Return what is published of a pipeline, by point."""
    return [
        PublishedPoint(
            publication=publication,
            windows=[row for row in publications.published(journal, publication) if row.visible_at is not None],
        )
        for publication in publications.of_pipeline(journal, pipeline)
    ]


def _published_of(journal: PgConnection, pipeline: Pipeline, window: Window) -> dict[str, tuple[str, int]]:
    """Return, by point, the manifest of a revision of a window and the number of its records; no point that does not
    have it whole."""
    manifests: dict[str, tuple[str, int]] = {}
    for point in _wanted_points(journal, pipeline):
        own = point.whole(window)
        if own is not None:
            manifests[point.publication.point] = point.manifest_uri(own), own.manifest["records"]
    return manifests


def report_published(journal: PgConnection, pipeline: Pipeline, window: Window, run: str) -> dict[str, dict[str, Any]]:
    """Return, by point, what the event of a run reports: its own window, and all others that no event of another run
    has. A task of the run that is tried again reports the same. No point of which there is nothing to report; it
    commits."""
    reports: dict[str, dict[str, Any]] = {}
    known = publications.of_pipeline(journal, pipeline.name)
    claimed = {publication.id: publications.claim_reports(journal, publication, run) for publication in known}
    for point in _wanted_points(journal, pipeline):  # read behind the claim: it has all that was claimed
        own, of_run = point.whole(window), claimed.get(point.publication.id, ())
        reported = [row for row in point.windows if row is own or (row.number, row.revision) in of_run]
        if reported:
            reports[point.publication.point] = {
                "manifest": None if own is None else point.manifest_uri(own),
                "topic": point.publication.topic or None,
                "records": None if own is None else own.manifest["records"],
                "complete_through": point.complete_through,
                "revoked": point.revoked,
                "published": [
                    {
                        "window": row.number,
                        "revision": row.revision,
                        "manifest": point.manifest_uri(row),
                        "records": row.manifest["records"],
                    }
                    for row in reported[-MOST_REPORTED:]
                ],
                "left_out": max(0, len(reported) - MOST_REPORTED),
            }
    journal.commit()
    return reports


def _wanted_points(journal: PgConnection, pipeline: Pipeline) -> list[PublishedPoint]:
    wanted = {publish.point for publish in pipeline.publish}
    return [point for point in published_points(journal, pipeline.name) if point.publication.point in wanted]


def committed_publication(journal: PgConnection, pipeline: Pipeline, window: Window) -> str | None:
    """Report what is published of a revision of a window; None when something of it is left to do."""
    manifests = _published_of(journal, pipeline, window)
    if set(manifests) != {publish.point for publish in pipeline.publish}:
        return None
    return published_text(journal, pipeline, window)


def published_text(journal: PgConnection, pipeline: Pipeline, window: Window) -> str:
    """Return a sentence about what is published of a revision of a window."""
    manifests = _published_of(journal, pipeline, window)
    texts = [
        f"{point}: {records:,} records are published, {manifest}"
        for point, (manifest, records) in sorted(manifests.items())
    ]
    waiting = sorted({publish.point for publish in pipeline.publish} - set(manifests))
    texts += [
        f"{point}: not published, as an older window is not certified, or it lies before the first" for point in waiting
    ]
    return "; ".join(texts)
