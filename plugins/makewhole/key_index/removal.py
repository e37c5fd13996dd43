"""Remove files of the key index that nobody reads any more: of runs that were merged, and of attempts that died."""

from datetime import UTC, datetime, timedelta

from makewhole.journal.key_index.runs import IndexedTopic, forget_retired, named_files, retire_replaced
from makewhole.key_index.files import filter_path
from makewhole.lake.storage import Storage
from makewhole.sql import PgConnection

GRACE = timedelta(days=2)
"""The time after which nobody reads or writes a file any more that was replaced, or of which the journal says nothing:
longer than a window is judged."""


def remove_unused_files(journal: PgConnection, storage: Storage, topic: IndexedTopic, grace: timedelta = GRACE) -> int:
    """Remove the files of the index that the journal does not name for longer than `grace`. Returns their number."""
    retire_replaced(journal, topic)
    forget_retired(journal, topic, grace)
    journal.commit()
    # First the files, then their names: what is written and named in between is there and named.
    there = storage.files_below(f"{topic.pipeline}/index/{topic.point}")
    named = named_files(journal, topic)
    journal.commit()
    kept = named | {filter_path(path) for path in named}
    oldest = datetime.now(UTC) - grace
    unused = [
        file.path
        for file in there
        if file.path not in kept and file.modified_at is not None and file.modified_at < oldest
    ]
    for path in unused:
        storage.remove(path)
    return len(unused)
