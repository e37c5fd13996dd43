"""Send what was published into a topic: in the order in which it was, transaction by transaction, each exactly once.

A transaction holds the records of a chunk and its number, as a marker; the journal follows. A restart fences whoever
was before, and asks the marker.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from makewhole.journal import leases, publications
from makewhole.journal.leases import Lease
from makewhole.journal.publications import Publication, PublishedWindow
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.published_records import PublishedRecords, is_sent
from makewhole.kafka.replay import ReplayWriter, publish_identity
from makewhole.lake.storage import Storage
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.points import TopicPoint
from makewhole.model.positions import RecordPositions
from makewhole.publishing.manifest import PublishedFile, sent_files
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Sending:
    """A publication, the lease of the run that publishes it, and the topic into which it is sent."""

    journal: PgConnection
    publication: Publication
    lease: Lease
    folder: Storage
    connection: KafkaConnection
    topic: TopicPoint

    @property
    def identity(self) -> str:
        """The transactional id, which is also the group whose committed offset is the marker."""
        return publish_identity(self.publication.pipeline, self.publication.point, self.topic.topic)

    def send(self, windows: Sequence[PublishedWindow]) -> int:
        """Send what the topic does not have yet of published windows, in their order. Return the number of records.

        Raises:
            RefusedError: the topic has records of another writer, or was made again.
            CorruptionError: what is in the topic contradicts the journal.
            LeaseLostError: another run took over.
        """
        chunks = sum(window.chunks for window in windows)
        if self.publication.sent_chunks >= chunks:
            return 0
        partitions = self._partitions()
        writer = ReplayWriter(self.connection, self.topic.topic, self.identity)
        try:
            done, sent = self._done(writer, self.publication.sent_chunks), 0
            for number, rows in self._chunks(windows, done):
                records = PublishedRecords(rows=rows, partitions=partitions, name=self.publication.id, chunk=number)
                self._write(writer, records)
                sent += rows.num_rows
        finally:
            writer.close()
        return sent

    def _partitions(self) -> int:
        """Return the number of partitions into which records are sent, which stays what it was at first."""
        with TopicLog(self.connection, self.topic.topic) as log:
            topic_id = log.describe().topic_id
            ends = {partition: end.offset for partition, end in log.high_watermarks().items()}
        noted = self.publication.partitions
        if noted is None:
            if any(ends.values()):
                raise RefusedError(
                    f"topic {self.topic.topic} is not empty, and nothing of {self.publication.point} was sent into it: "
                    "nothing is. Name a topic of its own"
                )
            publications.note_partitions(self.journal, self.publication, topic_id, len(ends))
            self.journal.commit()
            return len(ends)
        if topic_id != self.publication.topic_id or self._ends_before_what_was_sent(ends):
            raise RefusedError(
                f"topic {self.topic.topic} was made again, and what was sent into it is gone: nothing more is, so that "
                "its readers do not take the rest for all. Publish to a new folder and into a new topic"
            )
        return noted

    def _ends_before_what_was_sent(self, ends: Mapping[int, int]) -> bool:
        """Return whether the log is behind what it had, as after a broker was restored from a backup."""
        sent = {int(partition): offset for partition, offset in self.publication.sent_ends.items()}
        return any(ends.get(partition, 0) < offset for partition, offset in sent.items())

    def _done(self, writer: ReplayWriter, in_journal: int) -> int:
        """Fence every producer before, then return the number of chunks in the topic; the journal follows before the
        next one is sent, so that the marker equals its number or is one ahead."""
        done = self._count_done(writer, in_journal)
        if done > in_journal:
            publications.note_sent(self.journal, self.publication, done, {})
            self.journal.commit()
        return done

    def _count_done(self, writer: ReplayWriter, in_journal: int) -> int:
        marker = writer.open()
        if marker is None:
            ends = {int(partition): offset for partition, offset in self.publication.sent_ends.items()}
            has_next = is_sent(self.connection, self.topic.topic, self.publication.id, in_journal, ends)
            return in_journal + has_next
        if marker not in (in_journal, in_journal + 1):
            leases.renew(self.journal, self.lease)  # raises where a newer runner sent them
            raise CorruptionError(
                f"{writer.marker} says that {marker} chunks were sent into {self.topic.topic}, and the journal "
                f"{in_journal}: another makewhole publishes there. Nothing more is sent"
            )
        return marker

    def _write(self, writer: ReplayWriter, records: PublishedRecords) -> None:
        ends = dict[int, int]()

        def note(positions: RecordPositions) -> None:
            for partition, offset in zip(positions.partitions, positions.offsets, strict=True):
                ends[partition] = max(ends.get(partition, 0), offset + 1)

        for attempt in range(1, _ATTEMPTS + 1):
            leases.renew(self.journal, self.lease)  # raises where a newer runner fenced this one
            self.journal.commit()
            try:
                writer.write(records.chunk, records, delivered=note)
                break
            except TransientError:
                if attempt == _ATTEMPTS:
                    raise
                if self._done(writer, records.chunk) > records.chunk:
                    break
        publications.note_sent(self.journal, self.publication, records.chunk + 1, ends)
        self.journal.commit()

    def _chunks(self, windows: Sequence[PublishedWindow], done: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the chunks that are left, with their numbers."""
        for window in windows:
            if window.first_chunk + window.chunks <= done:
                continue
            number = window.first_chunk
            named = publications.files(self.journal, self.publication, [window])
            for file in sent_files(map(PublishedFile.from_json_dict, named), window.revision):
                if number + file.chunks <= done:
                    number += file.chunks
                    continue
                for rows in self.folder.pieces(file.path, file.chunk_rows):
                    if number >= done:
                        yield number, rows
                    number += 1
