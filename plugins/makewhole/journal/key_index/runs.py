"""Read and write the runs of the key index, and the merged runs that stand for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg2.extras import Json

from makewhole.model.errors import CorruptionError
from makewhole.sql import PgConnection, load_queries


@dataclass(frozen=True, kw_only=True)
class IndexedRun:
    """A run of the key index: of one window, or merged (`merge` is its number then).

    `files` has a file for each bucket that has rows. `revisions` are the windows in it with their revisions; `windows`
    those whose rows count, as no other revision of them counts more.
    """

    files: Mapping[str, str]
    rows: int
    revisions: Mapping[int, int]
    windows: tuple[int, ...]
    merge: int | None = None


@dataclass(frozen=True, kw_only=True)
class IndexedTopic:
    """A topic of a pipeline, as the key index knows it: by the name of its point."""

    pipeline: str
    point: str

    def run(self, journal: PgConnection, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement for this topic."""
        with journal.cursor() as cursor:
            cursor.execute(
                load_queries("key_index")[statement], {"pipeline": self.pipeline, "point": self.point} | values
            )
            return cursor.fetchall() if cursor.description else []


def topics(journal: PgConnection, pipeline: str) -> list[IndexedTopic]:
    """Return the topics of a pipeline that have an index, by name."""
    found = IndexedTopic(pipeline=pipeline, point="").run(journal, "topics")
    return [IndexedTopic(pipeline=pipeline, point=point) for (point,) in found]


def standing_runs(journal: PgConnection, topic: IndexedTopic, besides: int | None = None) -> list[IndexedRun]:
    """Return the runs that together are the index of a topic: each window counts in one of them. Window `besides` need
    not be in any.

    A window counts with the revision that could read most of its offsets, of such the newest.

    Raises:
        CorruptionError: the run of a window was retired, and no merged run has the window.
    """
    found, lacking = _standing(journal, topic)
    if lacking := [number for number in lacking if number != besides]:
        raise CorruptionError(
            f"{topic.pipeline}: no run of the key index has the keys of window {lacking[0]} of {topic.point}; write "
            f"the index again: makewhole index rebuild {topic.pipeline}"
        )
    return found


def readable_runs(journal: PgConnection, topic: IndexedTopic) -> list[IndexedRun]:
    """Return the runs that there are, as `standing_runs` does, though the run of some window may be nowhere."""
    return _standing(journal, topic)[0]


def _standing(journal: PgConnection, topic: IndexedTopic) -> tuple[list[IndexedRun], list[int]]:
    """Return the runs, and the windows of which there is none."""
    # In this order: what is merged meanwhile is found in the merged run, and never in none.
    counted = topic.run(journal, "counted_runs")
    merges = topic.run(journal, "standing_merges")
    revisions = {number: revision for number, revision, *_ in counted}
    found, merged, lacking = [], set(), []
    for merge, members, files, rows in merges:
        of_windows = {int(number): revision for number, revision in members.items()}
        windows = tuple(sorted(at for at, revision in of_windows.items() if revisions.get(at) == revision))
        merged |= {*windows}
        found.append(IndexedRun(files=files, rows=rows, revisions=of_windows, windows=windows, merge=merge))
    for number, revision, files, keys, is_retired in counted:
        if number in merged:
            continue
        if is_retired:
            lacking.append(number)
        else:
            found.append(IndexedRun(files=files, rows=keys, revisions={number: revision}, windows=(number,)))
    return found, lacking


def commit_merge(journal: PgConnection, topic: IndexedTopic, merged: IndexedRun, inputs: Sequence[IndexedRun]) -> bool:
    """Let a merged run stand for its inputs, in one transaction, which this ends. Tells whether it does: where another
    merge was faster with any of them, nothing is changed."""
    merges = [run.merge for run in inputs if run.merge is not None]
    single = [item for run in inputs if run.merge is None for item in run.revisions.items()]
    retired = topic.run(journal, "retire_merges", ids=merges)
    retired += topic.run(
        journal, "retire_runs", numbers=[at for at, _ in single], revisions=[revision for _, revision in single]
    )
    if len(retired) != len(inputs):
        journal.rollback()
        return False
    windows = {str(number): revision for number, revision in sorted(merged.revisions.items())}
    topic.run(journal, "put_merge", windows=Json(windows), files=Json(merged.files), rows=merged.rows)
    journal.commit()
    return True


def commit_rebuilt(
    journal: PgConnection, topic: IndexedTopic, runs: Sequence[IndexedRun], before: Sequence[IndexedRun]
) -> None:
    """Let runs of single windows stand in the place of those that these windows were in `before`, in one transaction,
    which this ends."""
    topic.run(journal, "retire_merges", ids=[run.merge for run in before if run.merge is not None])
    for run in runs:
        [(number, revision)] = run.revisions.items()
        topic.run(journal, "put_rebuilt_run", number=number, revision=revision, files=Json(run.files), keys=run.rows)
    journal.commit()


def retire_replaced(journal: PgConnection, topic: IndexedTopic) -> None:
    """Retire the runs of revisions that count no more, because a newer one read as much."""
    counted = [(number, revision) for number, revision, *_ in topic.run(journal, "counted_runs")]
    numbers, revisions = [at for at, _ in counted], [revision for _, revision in counted]
    topic.run(journal, "retire_replaced_runs", numbers=numbers, revisions=revisions)


def forget_retired(journal: PgConnection, topic: IndexedTopic, grace: timedelta) -> None:
    """Forget the files of what was retired longer ago than `grace`."""
    topic.run(journal, "forget_merges", grace=grace)
    topic.run(journal, "forget_files_of_runs", grace=grace)


def named_files(journal: PgConnection, topic: IndexedTopic) -> set[str]:
    """Return every file of the index of a topic that the journal names."""
    return {path for (path,) in topic.run(journal, "named_files")}
