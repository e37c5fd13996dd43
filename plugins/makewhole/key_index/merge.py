"""Merge runs of the key index in levels, so that a window asks few files however many windows there were.

A merge notes its attempt, writes new files and then says so in one commit of the journal: killed at any moment, it
leaves the runs as they were, or the merged one in their place. The files of dead attempts are removed later
(`makewhole.key_index.removal`).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

import polars as pl

from makewhole.compute.buckets import (
    bucket_name,
    buckets_of,
    is_in_bucket,
    names_within,
    number_of_buckets,
    shares_keys,
)
from makewhole.compute.indexed_keys.levels import runs_to_merge
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, begin_merge, commit_merge, standing_runs
from makewhole.key_index.files import IndexFile, IndexFileWriter, rows_in_key_order
from makewhole.lake.storage import Storage
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)


def merge_runs(journal: PgConnection, storage: Storage, topic: IndexedTopic) -> int:
    """Merge until each level has few runs. Returns the number of merges that this has committed.

    Two of these at once are harmless: where both merged a run, the first to commit counts, and the other one ends.
    """
    merges = 0
    while inputs := _next_inputs(journal, topic):
        attempt = begin_merge(journal, topic)
        if not commit_merge(journal, topic, attempt, write_merged(storage, topic, attempt, inputs), inputs):
            break
        merges += 1
        logger.info("%s: %s runs of the key index of %s are one now", topic.pipeline, len(inputs), topic.point)
    return merges


def folder_of(topic: IndexedTopic, attempt: str) -> str:
    """Return the folder of the files that an attempt at a merged run writes, and of no others."""
    return f"{topic.pipeline}/index/{topic.point}/merged/{attempt}"


def _next_inputs(journal: PgConnection, topic: IndexedTopic) -> list[IndexedRun]:
    runs = standing_runs(journal, topic)
    journal.commit()  # writing may take long, and a transaction that is idle keeps vacuum from the whole database
    chosen = [runs[place] for place in runs_to_merge([run.rows for run in runs])]
    return chosen or next(([run] for run in runs if _is_half_empty(run)), [])


def _is_half_empty(run: IndexedRun) -> bool:
    """Return whether most windows of a merged run count no more: they were dropped, or judged again."""
    return run.merge is not None and 0 < 2 * len(run.windows) <= len(run.revisions)


def write_merged(storage: Storage, topic: IndexedTopic, attempt: str, inputs: Sequence[IndexedRun]) -> IndexedRun:
    """Write the files of a run that can stand for these; windows that do not count are left behind.

    Its buckets are as many as its rows ask for. Each file of the inputs is read once, and its rows divided.
    """
    count = number_of_buckets(sum(run.rows for run in inputs))
    read = min(count, buckets_of(name for run in inputs for name in run.files))
    files, rows = dict[str, str](), 0
    for bucket in (bucket_name(number, read) for number in range(read)):
        folders = {name: f"{folder_of(topic, attempt)}/bucket={name}" for name in names_within(bucket, count)}
        for name, written in _write_divided(
            storage, folders, rows_in_key_order(storage, _files_in(inputs, bucket))
        ).items():
            files[name] = written.path
            rows += written.rows
    revisions = {number: run.revisions[number] for run in inputs for number in run.windows}
    return IndexedRun(files=files, rows=rows, revisions=revisions, windows=tuple(sorted(revisions)))


def _write_divided(
    storage: Storage, folders: Mapping[str, str], rows: Iterable[pl.DataFrame]
) -> dict[str, IndexFileWriter]:
    """Write rows to a file of each bucket (name → folder); return the files that have any."""
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(IndexFileWriter(storage, folder)) for name, folder in sorted(folders.items())
        }
        for frame in rows:
            for name, file in files.items():
                if len(part := frame.filter(is_in_bucket(name)) if len(files) > 1 else frame):
                    file.append(part)
    return {name: file for name, file in files.items() if file.rows}


def _files_in(inputs: Sequence[IndexedRun], bucket: str) -> list[IndexFile]:
    """Return the files of the runs with the keys of a bucket, which no other bucket of as many has."""
    return [
        IndexFile(path=path, windows=run.windows)
        for run in inputs
        for name, path in sorted(run.files.items())
        if shares_keys(name, bucket)
    ]
