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


@dataclass(frozen=True, kw_only=True)
class PublishedPoint:
    """Publications of a point, in the order in which it was: every revision that is visible."""

    publication: Publication
    windows: Sequence[PublishedWindow]

    @property
    def newest(self) -> dict[int, PublishedWindow]:
        """The newest published revision of each window, by number."""
        return {one.number: one for one in sorted(self.windows, key=lambda one: (one.number, one.revision))}

    @property
    def complete_through(self) -> int | None:
        """The last window up to which each one is published, as far as its topic, and proven, from the first on; None:
        not even the first."""
        proven = {number for number, one in self.newest.items() if one.revocation is None and self.is_sent(one)}
        first = self.publication.first_window
        through = next(at for at in range(first - 1, first + len(proven)) if at + 1 not in proven)
        return through if through in proven else None

    @property
    def revoked(self) -> list[int]:
        """The windows of which what is published last is not proven any more."""
        return [number for number, one in self.newest.items() if one.revocation is not None]

    def is_sent(self, window: PublishedWindow) -> bool:
        """Return whether a topic has all of a window; True where nothing is sent into any."""
        return not self.publication.topic or window.first_chunk + window.chunks <= self.publication.sent_chunks

    def manifest_uri(self, window: PublishedWindow) -> str:
        """Return the full name of the manifest of a window."""
        return path_below(self.publication.root, manifest_path(window.number, window.revision))


def published_points(journal: PgConnection, pipeline: str) -> list[PublishedPoint]:
    """Return what is published of a pipeline, by point."""
    return [
        PublishedPoint(
            publication=publication,
            windows=[one for one in publications.published(journal, publication) if one.visible_at is not None],
        )
        for publication in publications.of_pipeline(journal, pipeline)
    ]


def published_of(journal: PgConnection, pipeline: Pipeline, window: Window) -> dict[str, dict[str, Any]]:
    """Return, by point, what an event says of a revision of a window; no point that does not have it whole."""
    wanted = {publish.point for publish in pipeline.publish}
    found: dict[str, dict[str, Any]] = {}
    for point in published_points(journal, pipeline.name):
        one = next(
            (one for one in point.windows if (one.number, one.revision) == (window.number, window.revision)), None
        )
        if one is not None and point.publication.point in wanted and point.is_sent(one):
            found[point.publication.point] = {
                "manifest": point.manifest_uri(one),
                "topic": point.publication.topic or None,
                "records": one.manifest["records"],
                "complete_through": point.complete_through,
                "revoked": point.revoked,
            }
    return found


def committed_publication(journal: PgConnection, pipeline: Pipeline, window: Window) -> str | None:
    """Report what is published of a revision of a window; None when something of it is left to do."""
    found = published_of(journal, pipeline, window)
    if set(found) != {publish.point for publish in pipeline.publish}:
        return None
    return published_text(journal, pipeline, window)


def published_text(journal: PgConnection, pipeline: Pipeline, window: Window) -> str:
    """Return a sentence about what is published of a revision of a window."""
    found = published_of(journal, pipeline, window)
    texts = [
        f"{point}: {what['records']:,} records are published, {what['manifest']}"
        for point, what in sorted(found.items())
    ]
    waiting = sorted({publish.point for publish in pipeline.publish} - set(found))
    texts += [
        f"{point}: not published, as an older window is not certified, or it lies before the first" for point in waiting
    ]
    return "; ".join(texts)
