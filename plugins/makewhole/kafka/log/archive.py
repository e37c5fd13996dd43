"""Write and read the archive of a topic: fetched batches verbatim, in segment files that Kafka's own tools read.

`<directory>/partition=<p>/<base offset, 20 digits>.log` holds whole batches; `<base offset>.aborted.json` beside it
says which offsets the file answers for, which of them were expired, which transactions were aborted, and the file's
SHA-256, which is verified before a batch of it is used. A segment exists when its `.aborted.json` does. Neighbouring
ranges may be written side by side: a batch that touches two of them is kept once, by the one that holds its first
offset (of the window).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import IO
from uuid import uuid4

from makewhole.file_system import fsspec_file_system, make_folder, open_to_write
from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.account import OffsetSpan
from makewhole.kafka.log.batches import find_defect, split_batches
from makewhole.kafka.log.page import Isolation, LogPage
from makewhole.kafka.log.salvage import Undecodable
from makewhole.kafka.log.segment import SIDECAR, Segment
from makewhole.model.errors import CorruptionError, RefusedError, RemovedError
from makewhole.model.window import PartitionRange

_SEGMENT_BYTES = 1 << 30  # Kafka's tools address a segment with 32 bits
_PAGE_BYTES = 8 << 20
REMOVED = ".removed"
"""Ends the name of the mark beside an archive that was removed; the mark says when, and how long it was kept."""
_LEFT_OUT = "its batch was left to the archive of the range before, which was read too late for it"


@dataclass(kw_only=True)
class _OpenFile:
    """A file that is being written."""

    base_offset: int
    file: IO[bytes]
    size_bytes: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def append(self, data: bytes) -> None:
        self.file.write(data)
        self.digest.update(data)
        self.size_bytes += len(data)


class SegmentWriter:
    """Writer of the batches of one range. Give `write` to `read_range` as `on_fetched`, then call `finish`.

    `window_lo` is where the window of this partition begins, when the range is a later part of it: then a batch that
    reaches over from the part before is left to that part.
    """

    def __init__(
        self,
        directory: str,
        wanted: PartitionRange,
        *,
        window_lo: int | None = None,
        segment_bytes: int = _SEGMENT_BYTES,
    ) -> None:
        self._filesystem, root = fsspec_file_system(str(directory))
        self._folder = f"{root}/partition={wanted.partition}"
        self._range = wanted
        self._owns_head = window_lo is None or window_lo == wanted.lo
        self._segment_bytes = segment_bytes
        self._attempt = uuid4().hex
        self._written: list[_OpenFile] = []
        self._left_out: OffsetSpan | None = None
        self.sha256: dict[str, str] = {}
        """The digest in hex of each finished file, by its path in the archive."""
        make_folder(self._filesystem, self._folder)

    def write(self, base_offset: int, data: bytes) -> None:
        """Append whole batches, the first of which starts at `base_offset`."""
        if base_offset < self._range.lo and not self._owns_head:
            batches = list(split_batches(data))
            self._left_out = (self._range.lo, min(batches[0].end_offset, self._range.hi))
            data = data[batches[0].end :]
            if len(batches) == 1:
                return
            base_offset = batches[1].base_offset
        if not self._written or self._written[-1].size_bytes + len(data) > self._segment_bytes:
            self._next_file(base_offset)
        self._written[-1].append(data)

    def finish(
        self,
        expired: Sequence[OffsetSpan],
        aborted: Sequence[AbortedTransaction],
        *,
        truncated: Sequence[OffsetSpan] = (),
        unexplained: Sequence[Undecodable] = (),
    ) -> tuple[str, ...]:
        """Make the files visible, once the range was read to its end; returns their paths.

        All arguments are the reader's. A range without a batch leaves only its `.aborted.json`.
        """
        self._close()
        bases = [open_file.base_offset for open_file in self._written] or [self._range.lo]
        edges = [self._range.lo, *bases[1:], self._range.hi]
        paths: list[str] = []
        for index, base in enumerate(bases):
            size, digest = 0, hashlib.sha256()
            if self._written:
                size, digest = self._written[index].size_bytes, self._written[index].digest
                paths.append(f"{self._folder}/{base:020d}.log")
                self._filesystem.mv(self._temporary(base), paths[-1])
                self._note(paths[-1], digest.hexdigest())
            segment = Segment(
                base_offset=base,
                topic=self._range.topic,
                topic_id=self._range.topic_id,
                partition=self._range.partition,
                lo=edges[index],
                hi=edges[index + 1],
                size_bytes=size,
                sha256=digest.hexdigest(),
                expired=tuple(expired),
                truncated=tuple(truncated),
                unexplained=tuple(unexplained),
                left_out=self._left_out,
                aborted=tuple(aborted),
            )
            paths.append(f"{self._folder}/{base:020d}{SIDECAR}")
            self._write_sidecar(paths[-1], segment)
            self._note(paths[-1], hashlib.sha256(segment.to_json()).hexdigest())
        return tuple(paths)

    def _note(self, path: str, digest: str) -> None:
        self.sha256["/".join(path.split("/")[-2:])] = digest

    def discard(self) -> None:
        """Remove what an unfinished attempt wrote."""
        self._close()
        for open_file in self._written:
            if self._filesystem.exists(self._temporary(open_file.base_offset)):
                self._filesystem.rm_file(self._temporary(open_file.base_offset))

    def _temporary(self, base_offset: int) -> str:
        return f"{self._folder}/.{base_offset:020d}.{self._attempt}.tmp"

    def _next_file(self, base_offset: int) -> None:
        self._close()
        file = open_to_write(self._filesystem, self._temporary(base_offset))
        self._written.append(_OpenFile(base_offset=base_offset, file=file))

    def _close(self) -> None:
        for open_file in self._written:
            open_file.file.close()

    def _write_sidecar(self, path: str, segment: Segment) -> None:
        temporary = f"{path}.{self._attempt}.tmp"
        with open_to_write(self._filesystem, temporary) as file:
            file.write(segment.to_json())
        self._filesystem.mv(temporary, path)


class ArchiveLog:
    """Log source over an archive directory (a path or a URI of `makewhole.file_system`).

    Without `is_verified` its files are not read to their end first, to be held to their digests: batches have checksums
    of their own. That is enough for evidence, and not for what is written.
    """

    def __init__(self, directory: str, *, page_bytes: int = _PAGE_BYTES, is_verified: bool = True) -> None:
        self._filesystem, self._root = fsspec_file_system(str(directory))
        self._page_bytes = page_bytes
        self._segments: dict[int, list[Segment]] = {}
        self._cursor: tuple[int, int, int, int] | None = None
        self._is_verified = is_verified
        self._verified: set[tuple[int, int]] = set()
        self._is_kept = False

    def check(self, wanted: PartitionRange) -> None:
        """Refuse another incarnation of the topic, a damaged segment, and a range that the archive does not cover."""
        self._require_kept()
        reached = wanted.lo
        for segment in self.segments(wanted.partition):
            if (segment.topic, segment.topic_id) != (wanted.topic, wanted.topic_id):
                raise RefusedError(
                    f"The archive holds topic {segment.topic} with id {segment.topic_id}, asked was {wanted.topic} "
                    f"with id {wanted.topic_id}: another incarnation. Use the archive of the window that names this id"
                )
            if segment.lo <= reached:
                reached = max(reached, segment.hi)
        if reached < wanted.hi:
            raise CorruptionError(
                f"The archive of {wanted.topic} partition {wanted.partition} covers offsets up to {reached}, asked was "
                f"[{wanted.lo}, {wanted.hi}): take the snapshot of this window again"
            )

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def ranges(self) -> list[PartitionRange]:
        """Return the ranges that the archive covers, by partition; whether it has gaps shows when it is read.

        Raises:
            CorruptionError: there is no archive, or it cannot be read.
        """
        self._require_kept()
        folders = sorted(self._filesystem.glob(f"{self._root}/partition=*"))
        segments_of_partitions = [self.segments(int(str(folder).rsplit("=", 1)[1])) for folder in folders]
        if not any(segments_of_partitions):
            raise CorruptionError(f"{self._root} holds no segment of an archive: check the path")
        return [
            PartitionRange(
                topic=segments[0].topic,
                topic_id=segments[0].topic_id,
                partition=segments[0].partition,
                lo=min(segment.lo for segment in segments),
                hi=max(segment.hi for segment in segments),
            )
            for segments in sorted(filter(None, segments_of_partitions), key=lambda segments: segments[0].partition)
        ]

    def _require_kept(self) -> None:
        """Refuse an archive that was removed: its mark was there before its first file went.

        Raises:
            RemovedError: it was.
        """
        mark = f"{self._root}{REMOVED}"
        if not self._is_kept and self._filesystem.exists(mark):
            said = self._filesystem.cat_file(mark).decode()
            raise RemovedError(f"The archive {self._root} is not there any more: {said}")
        self._is_kept = True

    def segments(self, partition: int) -> list[Segment]:
        """Return the segments of a partition by base offset."""
        if partition not in self._segments:
            folder = f"{self._root}/partition={partition}"
            paths = self._filesystem.glob(f"{folder}/*{SIDECAR}")
            self._segments[partition] = [self._load(path) for path in sorted(paths)]
        return self._segments[partition]

    def _load(self, path: str) -> Segment:
        try:
            segment = Segment.from_json(self._filesystem.cat_file(path))
            size = self._filesystem.size(self._log_path(segment)) if segment.size_bytes else 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptionError(
                f"{path} or its segment cannot be read: take the snapshot of this window again"
            ) from error
        if size != segment.size_bytes:
            raise CorruptionError(
                f"{self._log_path(segment)} has {size} bytes, {segment.size_bytes} were written: "
                "take the snapshot again"
            )
        return segment

    def _verify(self, segment: Segment) -> None:
        """Compare a segment with its digest, once."""
        is_known = (segment.partition, segment.base_offset) in self._verified
        if segment.sha256 is None or is_known or not self._is_verified:
            return
        digest = hashlib.sha256()
        with self._filesystem.open(self._log_path(segment), "rb") as file:
            while data := file.read(self._page_bytes):
                digest.update(data)
        if digest.hexdigest() != segment.sha256:
            raise CorruptionError(
                f"{self._log_path(segment)} is not what was written: its SHA-256 differs. Take the snapshot again"
            )
        self._verified.add((segment.partition, segment.base_offset))

    def _log_path(self, segment: Segment) -> str:
        return f"{self._root}/partition={segment.partition}/{segment.base_offset:020d}.log"

    def fetch(self, wanted: PartitionRange, offset: int, isolation: Isolation) -> LogPage:
        """Return the next batches at `offset`, as the broker gave them."""
        segments = self.segments(wanted.partition)
        for start, end in {span for segment in segments for span in segment.truncated}:
            if start <= offset < end:
                return LogPage(truncated_end=end)
        for start, end in {span for segment in segments for span in segment.expired}:
            if start <= offset < end:
                return LogPage(log_start=end)
        # A batch that reaches over into the next range stands in the last segment that begins before it.
        begun = [at for at, segment in enumerate(segments) if segment.size_bytes and segment.base_offset <= offset]
        for segment in segments[begun[-1] if begun else 0 :]:
            page = self._page(segment, offset)
            if page is not None:
                return self._add_aborted(page, segments, offset, isolation)
        return LogPage(hole_end=wanted.hi)

    def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: Isolation) -> int:  # noqa: ARG002
        """Return where the first sound batch behind the damaged one begins."""
        for segment in self.segments(wanted.partition):
            data: bytes = (
                self._filesystem.cat_file(self._log_path(segment))
                if segment.size_bytes and segment.hi > offset
                else b""
            )
            for batch in split_batches(data):
                if batch.base_offset > offset and find_defect(batch, data) is None:
                    return min(batch.base_offset, wanted.hi)
        return wanted.hi

    def intact_end(self, wanted: PartitionRange) -> int:
        """Return the end of the range: an archive does not change; what was truncated earlier is noted in it."""
        return wanted.hi

    def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:
        """Return the reason that the read which wrote the archive noted; None where compaction explained the hole."""
        segments = self.segments(wanted.partition)
        noted = [(hole.offset, hole.end_offset, hole.reason) for segment in segments for hole in segment.unexplained]
        noted += [(*segment.left_out, _LEFT_OUT) for segment in segments if segment.left_out is not None]
        return next((reason for low, high, reason in noted if low < end and start < high), None)

    def _page(self, segment: Segment, offset: int) -> LogPage | None:
        """Return a page from the batch on that may hold `offset`; None when the segment has none from there on.

        What a damaged batch says of its own end is not sure: it may hold the offset where the next begins behind it.
        """
        if not segment.size_bytes:
            return None
        self._verify(segment)
        start, size, damaged = self._resume(segment, offset), self._page_bytes, None
        while start < segment.size_bytes:
            data: bytes = self._filesystem.cat_file(
                self._log_path(segment), start=start, end=min(start + size, segment.size_bytes)
            )
            batches = list(split_batches(data))
            if not batches:
                if start + size >= segment.size_bytes:
                    return LogPage(broken_end=segment.hi)
                size *= 2
                continue
            last = batches[-1]
            if damaged is not None and batches[0].base_offset > offset:
                return damaged
            holding = (at for at, batch in enumerate(batches) if max(batch.end_offset - 1, batch.base_offset) >= offset)
            if (first := next(holding, None)) is not None:
                self._cursor = (segment.partition, segment.base_offset, last.end_offset, start + last.end)
                before = (at for at, following in enumerate(batches[1:]) if following.base_offset > offset)
                return LogPage(data=data, batches=batches[min(first, next(before, first)) :])
            damaged = None if find_defect(last, data) is None else LogPage(data=data, batches=[last])
            start += last.end
        return damaged

    def _resume(self, segment: Segment, offset: int) -> int:
        """Return where to continue: behind the last page when it ended at `offset`, else the segment's beginning."""
        if self._cursor is not None and self._cursor[:3] == (segment.partition, segment.base_offset, offset):
            return self._cursor[3]
        return 0

    @staticmethod
    def _add_aborted(page: LogPage, segments: Sequence[Segment], offset: int, isolation: Isolation) -> LogPage:
        if isolation == "uncommitted":
            return page
        known: dict[tuple[int, int], AbortedTransaction] = {}
        for abort in (listed for segment in segments for listed in segment.aborted):
            key = (abort.first_offset, abort.producer_id)
            if key not in known or abort.marker_offset is not None:
                known[key] = abort
        touching = [abort for abort in known.values() if abort.marker_offset is None or abort.marker_offset >= offset]
        return replace(page, aborted=tuple(sorted(touching, key=_sort_key)))


def _sort_key(transaction: AbortedTransaction) -> tuple[int, int]:
    return transaction.first_offset, transaction.producer_id
