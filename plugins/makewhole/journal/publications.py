"""Read and write what is published once for everyone: places, windows in their order, and how far a topic has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.errors import RefusedError
from makewhole.model.points import Publish
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, statements_of

_run = statements_of("publication")


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Publication of a topic point: into the folder `root`, and from there into the place `topic` (empty: none), from
    the window `first_window` on.

    `topic_id`, `partitions`: those of that topic when records were first to be sent; `sent_chunks` and `sent_ends`
    follow the receipts there, and never lead."""

    id: str
    pipeline: str
    point: str
    root: str
    topic: str
    first_window: int
    topic_id: str | None
    partitions: int | None
    sent_chunks: int
    sent_ends: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class PublishedWindow:
    """A revision of a window as it was published, its `manifest` without the files (`files`); `newest_revision` and
    `state` are those of the window now.
    `revocation` is the entry of the chain by which no certificate of the revision stands any more (`ordinal`, `sha256`,
    `uri`, `because`, `issued_at`); None: one stands."""

    number: int
    revision: int
    ordinal: int
    manifest: Mapping[str, Any]
    first_chunk: int
    chunks: int
    visible_at: datetime | None
    decided_at: datetime
    newest_revision: int
    state: str
    revocation: Mapping[str, Any] | None = None

    @property
    def is_newest(self) -> bool:
        """Whether no later revision of the window is there that is not published."""
        return self.revision == self.newest_revision


def begin(journal: PgConnection, window: Window, publish: Publish, *, root: str, topic: str) -> Publication:
    """Return the publication of a point at these places, which is made where it is new: then it begins with the first
    window that was opened to be published so, or with this one.

    Raises:
        RefusedError: something else is published there.
    """
    pipeline, point, places = window.pipeline, publish.point, {"root": root, "topic": topic}
    of_window = {"pipeline": pipeline, "number": window.number, "point": point, "wanted": Json(asdict(publish))}
    _run(journal, "insert_publication", id=uuid4().hex, **of_window, **places)
    rows = records(Publication, _run(journal, "at_places", **places))
    wanted = [row for row in rows if (row.pipeline, row.point, row.root, row.topic) == (pipeline, point, root, topic)]
    if len(rows) == len(wanted) == 1:
        return wanted[0]
    other = next(row for row in rows if row not in wanted)
    raise RefusedError(
        f"{pipeline}: {point} cannot be published to {root}{' and ' + topic if topic else ''}: "
        f"{other.root}{' with ' + other.topic if other.topic else ''} has what is published of {other.point} of "
        f"pipeline {other.pipeline}. Give it a folder and a topic of its own"
    )


def reload(journal: PgConnection, publication: Publication) -> Publication:
    """Return a publication as it is now."""
    return next(row for row in of_pipeline(journal, publication.pipeline) if row.id == publication.id)


def of_pipeline(journal: PgConnection, pipeline: str) -> list[Publication]:
    """Return the publications of a pipeline, by point."""
    return records(Publication, _run(journal, "of_pipeline", pipeline=pipeline))


def due(journal: PgConnection, publication: Publication) -> list[tuple[int, int]]:
    """Return (number, revision) of the certified windows that are not published yet, from the first of the publication
    on, in their order."""
    rows = _run(journal, "due_windows", publication=publication.id, pipeline=publication.pipeline)
    return [(row.number, row.revision) for row in rows]


def published(journal: PgConnection, publication: Publication) -> list[PublishedWindow]:
    """Return what was published, in the order in which it was."""
    return [record(PublishedWindow, row) for row in _run(journal, "published_windows", publication=publication.id)]


def files(journal: PgConnection, publication: Publication, windows: Iterable[PublishedWindow]) -> list[dict[str, Any]]:
    """Return the files that the manifests of published windows name, window by window."""
    ordinals = [window.ordinal for window in windows]
    rows = _run(journal, "published_files", publication=publication.id, ordinals=ordinals) if ordinals else []
    return [file for (of_window,) in rows for file in of_window]


def decide(
    journal: PgConnection,
    publication: Publication,
    window: Window,
    manifest: Mapping[str, Any],
    *,
    files: Sequence[Mapping[str, Any]],
    chunks: int,
) -> None:
    """Decide what is published of a revision of a window: its manifest, and the files that this names, which are sent
    in so many chunks; what was decided before stays."""
    given = {"publication": publication.id, "manifest": Json(manifest), "files": Json(files), "chunks": chunks}
    _run(journal, "put_window", **scope(window), **given)


def note_visible(journal: PgConnection, publication: Publication, number: int, revision: int) -> None:
    """Note that a manifest stands beside its files."""
    _run(journal, "note_visible", publication=publication.id, number=number, revision=revision)


def note_partitions(journal: PgConnection, publication: Publication, topic_id: str, partitions: int) -> None:
    """Note which topic it is into which records are sent, and how many partitions it has."""
    _run(journal, "note_partitions", publication=publication.id, topic_id=topic_id, partitions=partitions)


def note_sent(journal: PgConnection, publication: Publication, chunks: int, ends: Mapping[int, int]) -> None:
    """Follow the receipts: so many chunks are in the topic, up to these offsets by partition."""
    by_name = {str(partition): offset for partition, offset in ends.items()}
    _run(journal, "note_sent", publication=publication.id, chunks=chunks, ends=Json(by_name))


def claim_reports(journal: PgConnection, publication: Publication, run: str) -> set[tuple[int, int]]:
    """Return (number, revision) of what the event of a run reports: what is published as a whole and was in no event
    of another run, which it is in none of from now on."""
    rows = _run(journal, "claim_reports", publication=publication.id, run=run)
    return {(row.number, row.revision) for row in rows}
