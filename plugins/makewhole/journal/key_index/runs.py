"""Read and write the runs of the key index, and the merged runs that stand for them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from psycopg2.extras import Json

from makewhole.model.errors import CorruptionError
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, single_value, statements_of

_run = statements_of("key_index")


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

    def run(self, journal: PgConnection, statement: str, **values: Any) -> list[Any]:
        """Run a named statement for this topic."""
        return _run(journal, statement, pipeline=self.pipeline, point=self.point, **values)


def topics(journal: PgConnection, pipeline: str) -> list[IndexedTopic]:
    """Return the topics of a pipeline that have an index, by name."""
    rows = IndexedTopic(pipeline=pipeline, point="").run(journal, "topics")
    return [IndexedTopic(pipeline=pipeline, point=point) for (point,) in rows]


def standing_runs(journal: PgConnection, topic: IndexedTopic, besides: int | None = None) -> list[IndexedRun]:
    """Return the runs that together are the index of a topic: each window counts in one of them. Window `besides` need
    not be in any.

    A window counts with the revision that could read most of its offsets, of such the newest. Windows that were dropped
    are in none.

    Raises:
        CorruptionError: the run of a window was retired, and no merged run has the window.
    """
    runs, missing = _standing(journal, topic)
    if missing := [number for number in missing if number != besides]:
        raise CorruptionError(
            f"{topic.pipeline}: no run of the key index has the keys of window {missing[0]} of {topic.point}; write "
            f"the index again: makewhole index rebuild {topic.pipeline}"
        )
    return runs


def readable_runs(journal: PgConnection, topic: IndexedTopic) -> list[IndexedRun]:
    """Return the runs that there are, as `standing_runs` does, though the run of some window may be nowhere."""
    return _standing(journal, topic)[0]


def _standing(journal: PgConnection, topic: IndexedTopic) -> tuple[list[IndexedRun], list[int]]:
    """Return the runs, and the windows of which there is none."""
    first = first_indexed(journal, topic)
    windows = single_value(topic.run(journal, "count_windows", first=first))
    runs, held = _read_standing(journal, topic, first)
    if windows <= len(held):
        return runs, []
    first = first_indexed(journal, topic)
    numbers = [number for (number,) in topic.run(journal, "windows_with_run", first=first)]
    # After the numbers: a window that is committed meanwhile lacks no run.
    runs, held = _read_standing(journal, topic, first)
    return runs, [number for number in numbers if number not in held]


def _read_standing(journal: PgConnection, topic: IndexedTopic, first: int) -> tuple[list[IndexedRun], set[int]]:
    """Return the runs, and the windows from `first` on that count in any of them."""
    # In this order: what is merged meanwhile is found in the merged run, and never in none.
    counted = topic.run(journal, "counted_runs", first=first)
    merges = topic.run(journal, "standing_merges")
    revisions = {run.number: run.revision for run in counted}
    runs, held = [], set[int]()
    for merge in merges:
        of_windows = {int(number): revision for number, revision in merge.windows.items()}
        # Of a window that was judged once, and is merged, no other revision counts.
        counts = (at for at, revision in of_windows.items() if revisions.get(at, revision) == revision)
        windows = tuple(sorted(at for at in counts if at >= first))
        held.update(windows)
        runs.append(record(IndexedRun, merge, revisions=of_windows, windows=windows, merge=merge.id))
    for run in counted:
        if run.number not in held and not run.is_retired:
            held.add(run.number)
            runs.append(
                record(IndexedRun, run, revisions={run.number: run.revision}, windows=(run.number,), merge=None)
            )
    return runs, held


def put_key_run(
    journal: PgConnection, window: Window, point: str, files: Mapping[str, str], keys: int, *, is_partial: bool = False
) -> None:
    """Add a window's run to the index of a topic; `files` is bucket → file. `is_partial`: keys that earlier revisions
    read of a ledger may be missing in it."""
    topic = IndexedTopic(pipeline=window.pipeline, point=point)
    numbers = {"number": window.number, "revision": window.revision}
    topic.run(journal, "put_key_run", **numbers, files=Json(files), keys=keys, is_partial=is_partial)


def partial_runs(journal: PgConnection, topic: IndexedTopic) -> set[tuple[int, int]]:
    """Return (number, revision) of the windows in whose runs, merged or not, keys that earlier revisions read of a
    ledger may be missing."""
    return {(number, revision) for number, revision in topic.run(journal, "partial_runs")}


def begin_merge(journal: PgConnection, topic: IndexedTopic) -> str:
    """Note an attempt at a merged run, in one transaction, which this ends. Returns its name."""
    attempt: str = uuid4().hex
    topic.run(journal, "begin_merge", attempt=attempt)
    journal.commit()
    return attempt


def commit_merge(
    journal: PgConnection, topic: IndexedTopic, attempt: str, merged: IndexedRun, inputs: Sequence[IndexedRun]
) -> bool:
    """Make a merged run stand for its inputs, in one transaction, which this ends. Returns whether it does: where
    another merge was faster with any of them, nothing is changed."""
    merges = [run.merge for run in inputs if run.merge is not None]
    single = [item for run in inputs if run.merge is None for item in run.revisions.items()]
    retired = topic.run(journal, "retire_merges", ids=merges)
    retired += topic.run(
        journal, "retire_runs", numbers=[at for at, _ in single], revisions=[revision for _, revision in single]
    )
    windows = {str(number): revision for number, revision in sorted(merged.revisions.items())}
    content = {"windows": Json(windows), "files": Json(merged.files), "rows": merged.rows}
    stands = topic.run(journal, "put_merge", attempt=attempt, **content)
    if not stands or len(retired) != len(inputs):
        journal.rollback()
        return False
    journal.commit()
    return True


def commit_rebuilt(
    journal: PgConnection,
    topic: IndexedTopic,
    runs: Sequence[IndexedRun],
    before: Sequence[IndexedRun],
    partial: Collection[int] = (),
) -> None:
    """Put runs of single windows in the place of those that these windows were in `before`, in one transaction,
    which this ends. `partial`: the windows in whose runs keys that earlier revisions read may be missing."""
    topic.run(journal, "retire_merges", ids=[run.merge for run in before if run.merge is not None])
    for run in runs:
        [(number, revision)] = run.revisions.items()
        content = {"files": Json(run.files), "keys": run.rows, "is_partial": number in partial}
        topic.run(journal, "put_rebuilt_run", number=number, revision=revision, **content)
    journal.commit()


def first_indexed(journal: PgConnection, topic: IndexedTopic) -> int:
    """Return the number of the first window that the index of a topic reaches: 1 where nothing was dropped."""
    return int(single_value(topic.run(journal, "first_indexed")))


def drop_before(journal: PgConnection, topic: IndexedTopic, number: int) -> int:
    """Drop what the index has of the windows before one, in one transaction, which this ends; the files are removed
    later. Returns the number of windows that were dropped now."""
    dropped = {at for (at,) in topic.run(journal, "drop_runs", number=number)}
    topic.run(journal, "retire_old_merges", number=number)
    journal.commit()
    return len(dropped)


def retire_replaced(journal: PgConnection, topic: IndexedTopic) -> None:
    """Retire the runs of revisions that count no more, because a newer one read as much."""
    first = first_indexed(journal, topic)
    counted = topic.run(journal, "counted_runs", first=first)
    numbers, revisions = [run.number for run in counted], [run.revision for run in counted]
    topic.run(journal, "retire_replaced_runs", numbers=numbers, revisions=revisions)


def retired_attempts(journal: PgConnection, topic: IndexedTopic, grace: timedelta) -> list[str]:
    """Return the attempts at merged runs that were retired longer ago than `grace`, or never stood since."""
    return [attempt for (attempt,) in topic.run(journal, "retired_merges", grace=grace)]


def forget_attempt(journal: PgConnection, topic: IndexedTopic, attempt: str) -> bool:
    """Forget the attempt at a merged run: from now on to the end of the transaction it cannot stand. Returns whether
    it does not stand."""
    return bool(topic.run(journal, "forget_merge", attempt=attempt))


def retired_runs(journal: PgConnection, topic: IndexedTopic, grace: timedelta) -> list[tuple[int, int, list[str]]]:
    """Return (number, revision, files) of the runs of windows that were retired longer ago than `grace`."""
    rows = topic.run(journal, "retired_runs", grace=grace)
    return [(number, revision, sorted(files.values())) for number, revision, files in rows]


def forget_files(journal: PgConnection, topic: IndexedTopic, number: int, revision: int) -> bool:
    """Forget the files of a window's run. Returns whether it is still retired."""
    return bool(topic.run(journal, "forget_files_of_run", number=number, revision=revision))
