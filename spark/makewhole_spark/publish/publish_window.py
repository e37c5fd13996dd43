"""Publish the records of windows once for everyone: decided once in the journal, then made visible as a whole.

What is published of a revision is decided by a row of the journal, under a lease whose epoch fences earlier runners.
Its manifest is written from that row, by whoever comes next when this process is killed.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from makewhole.journal import certificates, leases, publications, windows
from makewhole.journal.leases import Lease
from makewhole.journal.publications import Publication, PublishedWindow
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.retention.file_locks import files_kept
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.model.points import Publish
from makewhole.model.window import Window
from makewhole.publishing import place
from makewhole.publishing.manifest import VERSION, PublishedFile, count_chunks, in_order
from makewhole.publishing.send import Sending
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext, window_context
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.publish.choose_records import ChosenRecords, choice_tasks, choose_records
from makewhole_spark.publish.write_records import WriteTask, WrittenRecords, write_records
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.snapshot.read_topics import split_range

logger = logging.getLogger(__name__)

_RECORDS_PER_TASK = 2_000_000
_LEASE_SECONDS = 60.0
_HOLDER = "publish"  # one name: the next runner takes over at once, and the epoch fences the one before


@dataclass(frozen=True, kw_only=True)
class PublishedNow:
    """Publications of a run at a point: the windows with their manifests, in their order."""

    point: str
    windows: tuple[PublishedWindow, ...]


def publish_windows(carrier: Carrier, journal: PgConnection, context: WindowContext) -> list[PublishedNow]:
    """Publish what is due of every point that the pipeline publishes: the window, and older ones that are certified and
    not published yet.

    Raises:
        RefusedError: something else is published at that place, or not everything is known by name.
        CorruptionError: what was published before, or the window's archive, is not there any more.
        TransientError: a key is being erased.
    """
    if not context.pipeline.publish:
        return []
    with files_kept(journal, context.pipeline.name):
        return [_publish_point(carrier, journal, context, publish) for publish in context.pipeline.publish]


def _publish_point(carrier: Carrier, journal: PgConnection, context: WindowContext, publish: Publish) -> PublishedNow:
    pipeline = context.pipeline
    publication = publications.begin(
        journal,
        context.window,
        publish,
        root=place.root_of(pipeline, publish, context.storage),
        topic=place.topic_of(pipeline, publish),
    )
    lease = leases.acquire(journal, f"publish {publication.id}", _HOLDER, _LEASE_SECONDS)
    journal.commit()
    known = publications.published(journal, publication)
    folder = place.claim(publication, is_new=not known)
    run = _PublishingRun(carrier=carrier, journal=journal, publication=publication, lease=lease, folder=folder)
    run.show_decided()
    for number, revision in _due(journal, publication, known):
        window = windows.load(journal, pipeline.name, number, revision)
        run.publish(window_context(window, pipeline.as_written or pipeline), publish.point)
        run.show_decided()
    now = publications.published(journal, publication)
    journal.commit()
    if publish.topic is not None:
        _send(run, context, publish.topic, now)
    decided = {(row.number, row.revision) for row in known if row.visible_at is not None}
    return PublishedNow(
        point=publish.point, windows=tuple(row for row in now if (row.number, row.revision) not in decided)
    )


def _send(run: "_PublishingRun", context: WindowContext, topic: str, windows: Sequence[PublishedWindow]) -> None:
    point = context.pipeline.topic(topic)
    leases.renew(run.journal, run.lease)  # raises where a newer runner has sent since
    publication = publications.reload(run.journal, run.publication)
    run.journal.commit()
    sending = Sending(
        journal=run.journal,
        publication=publication,
        lease=run.lease,
        folder=run.folder,
        connection=context.kafka(point),
        topic=point,
    )
    sent = sending.send(windows)
    logger.info("%d records of %s were sent into topic %s", sent, run.publication.point, point.topic)


def _due(journal: PgConnection, publication: Publication, known: Sequence[PublishedWindow]) -> list[tuple[int, int]]:
    """Return the windows to publish now. Into a topic they go in their order: one waits for all before it."""
    due = publications.due(journal, publication)
    if not publication.topic:
        return due
    numbers = {window.number for window in known} | {number for number, _ in due}
    first = publication.first_window
    through = next(number for number in range(first, first + len(numbers) + 1) if number not in numbers)
    for number, _ in due:
        if number >= through:
            logger.warning("window %d is not published yet: window %d before it is not certified", number, through)
    return [pair for pair in due if pair[0] < through]


@dataclass(frozen=True, kw_only=True)
class _PublishingRun:
    """A run that publishes windows of one publication, for as long as it has the lease."""

    carrier: Carrier
    journal: PgConnection
    publication: Publication
    lease: Lease
    folder: Storage

    def show_decided(self) -> None:
        """Make visible what was decided, oldest first."""
        for window in publications.published(self.journal, self.publication):
            if window.visible_at is None:
                named = publications.files(self.journal, self.publication, [window])
                uri = place.show(self.folder, {**window.manifest, "files": named})
                publications.note_visible(self.journal, self.publication, window.number, window.revision)
                self.journal.commit()
                logger.info("window %d (revision %d) is published: %s", window.number, window.revision, uri)

    def publish(self, context: WindowContext, point: str) -> None:
        """Write the files of a revision of a window, and decide that they are what is published of it."""
        window = context.window
        known, before = self._sweep(window)
        place.require_files(self.folder, [file.path for file in before])
        manifests = snapshot_manifests.snapshots(self.journal, window)
        neighbours = NeighbouringWindows(journal=self.journal, context=context, manifests=manifests)
        folder = f"{point}/publish-{uuid4().hex[:12]}"
        chosen = self._carry(choice_tasks(neighbours, point, folder, is_revision=bool(before)), choose_records)
        archive = manifests[point]["archive"]
        tasks = list(_write_tasks(self, context, point, archive, chosen, before, known))
        written = self._carry(tasks, write_records)
        content = _ManifestContent(context=context, point=point, chosen=chosen, written=written)
        manifest = content.manifest(self.journal, self.publication, manifests[point])
        place.require_own(self.folder, self.publication)
        leases.renew(self.journal, self.lease)  # holds its row locked: no other run decides meanwhile
        own = content.own_files
        publications.decide(
            self.journal,
            self.publication,
            window,
            manifest,
            files=[file.to_json_dict() for file in (*before, *own)],
            chunks=count_chunks(own),
        )
        self.journal.commit()
        for part in ("chosen", "doubted", "resent"):
            for file in context.storage.files_below(f"{window.prefix}/{folder}/{part}"):
                context.storage.remove(file.path)

    def _sweep(self, window: Window) -> tuple[list[PublishedWindow], tuple[PublishedFile, ...]]:
        """Remove what killed attempts at a revision left, while no other run can decide that something of it counts.
        Return what was published before, and of it the files of the window's earlier revisions."""
        leases.renew(self.journal, self.lease)
        known = publications.published(self.journal, self.publication)
        before = tuple(self._files_of(_newest_before(known, window)))
        swept = place.sweep(self.folder, window.number, window.revision)
        self.journal.commit()
        if swept:
            logger.info("%s: %d files of an attempt that did not end were removed", window.label, swept)
        return known, before

    def _files_of(self, windows: Iterable[PublishedWindow]) -> Iterator[PublishedFile]:
        return map(PublishedFile.from_json_dict, publications.files(self.journal, self.publication, windows))

    def newest_files(self, windows: Iterable[PublishedWindow]) -> tuple[str, ...]:
        """Return the files of windows, all revisions of each: a key that is published there stays there. An event is
        published once, and of versions the later one counts, also for those who read a topic."""
        newest = {window.number: window for window in sorted(windows, key=lambda window: window.revision)}
        return tuple(file.path for file in self._files_of(newest.values()))

    def _carry(self, tasks: Sequence[Any], run: Any) -> list[Any]:
        return carry_released(self.carrier, self.journal, tasks, run)


def _newest_before(known: Sequence[PublishedWindow], window: Window) -> list[PublishedWindow]:
    """Return the newest published revision of a window before this one, if there is any."""
    revisions = [row for row in known if row.number == window.number]
    if any(row.revision >= window.revision for row in revisions):
        raise RefusedError(f"{window.label} is published already, or a later revision of it is")
    return sorted(revisions, key=lambda row: row.revision)[-1:]


def _write_tasks(
    run: _PublishingRun,
    context: WindowContext,
    point: str,
    archive: str,
    chosen: Sequence[ChosenRecords],
    before: Sequence[PublishedFile],
    known: Sequence[PublishedWindow],
) -> Iterator[WriteTask]:
    """Yield the tasks that write a window: of the partitions of which anything is chosen, or was."""
    by_partition: dict[int, list[str]] = {}
    for partition, path, _ in (file for bucket in chosen for file in bucket.files):
        by_partition.setdefault(partition, []).append(path)
    held = {*by_partition, *(file.partition for file in before)}
    later = run.newest_files(window for window in known if window.number > context.window.number)
    resent = tuple(bucket.resent_file for bucket in chosen if bucket.resent_file)
    earlier = run.newest_files(window for window in known if resent and window.number < context.window.number)
    for whole in context.window.ranges[point]:
        if whole.partition in held:
            for part in split_range(whole, _RECORDS_PER_TASK):
                yield WriteTask(
                    context=context,
                    root=run.folder.root,
                    archive=archive,
                    range=part,
                    chosen=tuple(by_partition.get(whole.partition, ())),
                    before=tuple(file for file in before if file.partition == whole.partition),
                    later=later,
                    earlier=earlier,
                    resent=resent,
                )


@dataclass(frozen=True, kw_only=True)
class _ManifestContent:
    """Entries of the manifest of a revision of a window, but for the files that it names."""

    context: WindowContext
    point: str
    chosen: Sequence[ChosenRecords]
    written: Sequence[WrittenRecords]

    @property
    def own_files(self) -> list[PublishedFile]:
        """The files of what changed, in the order in which they are sent."""
        return in_order(file for piece in self.written for file in piece.files)

    def manifest(self, journal: PgConnection, publication: Publication, snapshot: Mapping[str, Any]) -> dict[str, Any]:
        """Return the manifest."""
        window, pipeline = self.context.window, self.context.pipeline
        certificate = certificates.of_revision(journal, window)
        first = NeighbouringWindows(journal=journal, context=self.context, manifests={self.point: snapshot})
        hop = next(hop for hop in pipeline.hops if self.point in (hop.source, hop.target))
        own = self.own_files
        return {
            "version": VERSION,
            "publication": publication.id,
            "pipeline": pipeline.name,
            "point": self.point,
            "topic": pipeline.topic(self.point).topic,
            "semantics": hop.semantics.value,
            "window": window.number,
            "revision": window.revision,
            "start": None if window.start is None else window.start.isoformat(),
            "end": window.end.isoformat(),
            "state": window.state.value,
            "certificate": None if certificate is None else certificate.sha256,
            "offsets": [
                {"topic_id": part.topic_id, "partition": part.partition, "lo": part.lo, "hi": part.hi}
                for part in window.ranges[self.point]
            ],
            "accounting": snapshot["accounting"],
            "undecodable": snapshot["undecodable"],
            "keys_known_from_window": first.indexed_from(self.point),
            "records": sum(piece.standing for piece in self.written),
            "published": sum(file.rows for file in own if file.change == "publish"),
            "withdrawn": sum(file.rows for file in own if file.change == "withdraw"),
            "left_out": self._left_out(),
            "left_out_files": [
                self.context.storage.uri(bucket.left_out_file) for bucket in self.chosen if bucket.left_out_file
            ],
            "sent_again": {
                "records": sum(bucket.resent_records for bucket in self.chosen),
                "keys_of_other_windows": sum(bucket.resent_keys for bucket in self.chosen)
                + sum(piece.elsewhere for piece in self.written),
            },
        }

    def _left_out(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for bucket in self.chosen:
            for why, keys in bucket.left_out.items():
                total[why] = total.get(why, 0) + keys
        return dict(sorted(total.items()))
