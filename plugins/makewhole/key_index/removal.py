"""Remove files of the key index that are not read any more: of runs that were merged, and of merges that died.

Only files are removed that the journal says are its own: another service may keep its files in the same folders.
"""

from datetime import timedelta

from makewhole.journal.key_index.runs import (
    IndexedTopic,
    forget_attempt,
    forget_files,
    retire_replaced,
    retired_attempts,
    retired_runs,
)
from makewhole.key_index.files import filter_path
from makewhole.key_index.merge import folder_of
from makewhole.lake.storage import Storage
from makewhole.sql import PgConnection

GRACE = timedelta(days=2)
"""The time after which the files of a retired run are not read any more, nor those of a merge written: longer than a
window is judged."""


def remove_unused_files(journal: PgConnection, storage: Storage, topic: IndexedTopic, grace: timedelta = GRACE) -> int:
    """Remove the files of runs that were retired longer ago than `grace`. Returns their number.

    They are forgotten in one transaction with their removal: killed in between, the next one removes what is left; and
    a merge that has slept since cannot stand meanwhile.
    """
    retire_replaced(journal, topic)
    journal.commit()
    removed = 0
    for attempt in retired_attempts(journal, topic, grace):
        if forget_attempt(journal, topic, attempt):
            removed += _remove(storage, [file.path for file in storage.files_below(folder_of(topic, attempt))])
        journal.commit()
    for number, revision, files in retired_runs(journal, topic, grace):
        if forget_files(journal, topic, number, revision):
            removed += _remove(storage, [path for file in files for path in (filter_path(file), file)])
        journal.commit()
    return removed


def _remove(storage: Storage, paths: list[str]) -> int:
    for path in paths:
        storage.remove(path)
    return len(paths)
