"""Report what the key index of a topic is made of, and keep it small: merge its runs, remove unused files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.key_index.runs import IndexedTopic, drop_before, first_indexed, standing_runs, topics
from makewhole.journal.retention.file_locks import files_kept
from makewhole.key_index.files import filter_path
from makewhole.key_index.merge import merge_runs
from makewhole.key_index.removal import GRACE, remove_unused_files
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class TopicIndex:
    """The content of the key index of a topic: its runs, rows (one for a key and window), and files with their
    sizes. `unused_files`: files in its folder that are no part of it any more. `known_since`: the moment from which on
    keys are known, where older ones were dropped; None: since the first window."""

    point: str
    windows: int
    runs: int
    rows: int
    files: int
    size_bytes: int
    unused_files: int
    known_since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class CompactedIndex:
    """Reports what was done to the key index of a topic, and what it is made of now. `dropped_windows`: those that are
    older than the pipeline's `history`."""

    dropped_windows: int
    merges: int
    removed_files: int
    index: TopicIndex


def indexes(journal: PgConnection, storage: Storage, pipeline: str) -> list[TopicIndex]:
    """Return what the indexes of a pipeline are made of, by topic.

    Raises:
        RefusedError: the pipeline has none.
    """
    return [_index(journal, storage, topic) for topic in _topics(journal, pipeline)]


def compact(
    journal: PgConnection,
    storage: Storage,
    pipeline: str,
    grace: timedelta = GRACE,
    history: timedelta | None = None,
) -> Iterator[CompactedIndex]:
    """Drop what is older than `history`, merge the runs of each topic of a pipeline and remove what has not been read
    for longer than `grace`.

    Raises:
        RefusedError: the pipeline has no index.
        TransientError: a key of the pipeline is being erased.
    """
    for topic in _topics(journal, pipeline):
        with files_kept(journal, pipeline):
            dropped = drop_old_runs(journal, topic, history)
            merges = merge_runs(journal, storage, topic)
            removed = remove_unused_files(journal, storage, topic, grace)
        index = _index(journal, storage, topic)
        yield CompactedIndex(dropped_windows=dropped, merges=merges, removed_files=removed, index=index)


def drop_old_runs(journal: PgConnection, topic: IndexedTopic, history: timedelta | None) -> int:
    """Drop what the index has of windows that end longer before the newest judged one than `history`; nothing where it
    is None, or of a ledger: of rows that were purged nothing else says that they were right. Returns the number of
    windows that were dropped now."""
    windows = JudgedWindows(journal=journal, pipeline=topic.pipeline)
    if history is None or windows.first_reading(topic.point) is None:
        return 0
    return drop_before(journal, topic, windows.first_within(history))


def _topics(journal: PgConnection, pipeline: str) -> list[IndexedTopic]:
    indexed = topics(journal, pipeline)
    if not indexed:
        raise RefusedError(
            f"{pipeline} has no key index: no window of it with a topic was judged. `makewhole windows {pipeline}` "
            "shows its windows"
        )
    return indexed


def _index(journal: PgConnection, storage: Storage, topic: IndexedTopic) -> TopicIndex:
    there = {file.path: file.size_bytes for file in storage.files_below(f"{topic.pipeline}/index/{topic.point}")}
    runs = standing_runs(journal, topic)
    first = first_indexed(journal, topic)
    windows = JudgedWindows(journal=journal, pipeline=topic.pipeline)
    known_since = windows.start_of(first) if first > 1 else None
    journal.commit()
    files = [path for run in runs for path in run.files.values()]
    sizes = _sizes(there, files)
    return TopicIndex(
        point=topic.point,
        windows=sum(len(run.windows) for run in runs),
        runs=len(runs),
        rows=sum(run.rows for run in runs),
        files=len(files),
        size_bytes=sum(sizes.values()),
        unused_files=len(there) - len(sizes),
        known_since=known_since,
    )


def _sizes(there: Mapping[str, int], files: list[str]) -> dict[str, int]:
    """Return the sizes of files and of the filters beside them, of those that are there."""
    return {path: there[path] for file in files for path in (file, filter_path(file)) if path in there}
