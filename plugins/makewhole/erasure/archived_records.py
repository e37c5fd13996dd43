"""Take the records of a key out of the archives of a pipeline's windows."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from makewhole.erasure.stored_rows import RowsOfKey
from makewhole.kafka.log.archive import REMOVED
from makewhole.kafka.log.segment import SIDECAR, Segment
from makewhole.kafka.log.without_records import without_records
from makewhole.lake.storage import Storage, StoredFile
from makewhole.model.errors import CorruptionError

_LOG = ".log"
_IN_POINT = re.compile(r"(?P<folder>[^/]+/window=[0-9]+/revision=[0-9]+/(?P<point>[^/]+))/")
_ARCHIVED = re.compile(_IN_POINT.pattern + r"archive/partition=(?P<partition>[0-9]+)/[0-9]+" + re.escape(SIDECAR))

Positions = Mapping[tuple[str, str, int], frozenset[int]]
"""Offsets of the records of a key by topic id, point and partition."""


@dataclass(frozen=True, kw_only=True)
class RewrittenSegment:
    """A file of an archive without the records of a key, and the file beside it, by path with their contents."""

    contents: Mapping[str, bytes]
    records: int


def segments_of(storage: Storage, files: Sequence[StoredFile]) -> dict[str, Segment]:
    """Return what stands beside each file of archives, by path.

    Raises:
        CorruptionError: one of them is not as it was written.
    """
    segments = {}
    for file in files:
        if _ARCHIVED.fullmatch(file.path) and not file.path.endswith(REMOVED):
            try:
                segments[file.path] = Segment.from_json(storage.read_bytes(file.path))
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptionError(f"{storage.uri(file.path)} cannot be read; restore it") from error
    return segments


def positions_of(rows: Sequence[RowsOfKey], segments: Mapping[str, Segment]) -> Positions:
    """Return where the records of a key are: the snapshot of a point has partition and offset, its archive the id that
    the topic had."""
    ids: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for path, segment in segments.items():
        matched = _IN_POINT.match(path)
        assert matched is not None
        ids[matched["folder"], segment.partition].append(segment)
    positions: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for of_file in rows:
        matched = _IN_POINT.match(of_file.path)
        if matched is None:
            continue
        for partition, offset in of_file.offsets:
            for segment in ids[matched["folder"], partition]:
                if segment.lo <= offset < segment.hi:
                    positions[segment.topic_id, matched["point"], partition].add(offset)
    return {place: frozenset(offsets) for place, offsets in positions.items()}


def rewritten_segments(
    storage: Storage, segments: Mapping[str, Segment], positions: Positions
) -> Iterator[RewrittenSegment]:
    """Yield the files of archives that hold any of these records, as they are without them. A batch may reach over the
    end of a window, so every archive of the topic is looked at.

    Raises:
        CorruptionError: a file is not what was archived, or a batch in it cannot be read.
    """
    for path, segment in segments.items():
        matched = _IN_POINT.match(path)
        assert matched is not None
        offsets = positions.get((segment.topic_id, matched["point"], segment.partition), frozenset())
        if not offsets or not segment.size_bytes:
            continue
        log = f"{path.removesuffix(SIDECAR)}{_LOG}"
        text = storage.read_bytes(log)
        left = without_records(text, offsets)
        if left != text:
            changed = replace(segment, size_bytes=len(left), sha256=sha256(left).hexdigest())
            # In this order: killed in between, the records still differ, and both are written when it goes on.
            yield RewrittenSegment(contents={path: changed.to_json(), log: left}, records=len(offsets))
