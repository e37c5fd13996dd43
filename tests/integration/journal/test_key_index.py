"""Test the key index on a real journal: in levels it says what all runs say, whatever dies, and whoever still reads."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from makewhole.compute.buckets import bucket_name
from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.indexed_keys.former_readings import with_reading
from makewhole.compute.indexed_keys.key_runs import build_key_run, first_and_latest_copies, first_copies
from makewhole.compute.indexed_keys.levels import runs_to_merge
from makewhole.compute.indexed_keys.stored_runs import stored_run
from makewhole.compute.keys import with_hash
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.key_index import runs
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, begin_merge, commit_merge, standing_runs
from makewhole.journal.results import snapshot_manifests
from makewhole.key_index.files import IndexFile, filter_path, rows_of_keys, write_index_file
from makewhole.key_index.merge import merge_runs
from makewhole.key_index.removal import remove_unused_files
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from tests.world.examples import seeds
from tests.world.sql import run_sql

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 2, tzinfo=UTC)
TOPIC = IndexedTopic(pipeline="demo", point="a")
NO_GRACE = timedelta(0)
KEYS = tuple(f"k{number}" for number in range(30))


def records(draw: random.Random, offset: int, number: int) -> pl.DataFrame:
    """Return committed copies with versions, filters, replays and tombstones."""
    schema = {name: kind for name, kind in TOPIC_KEYS.items() if name not in HASH}
    rows = [
        {"key": draw.choice(KEYS), "partition": draw.randrange(2), "offset": offset + at, "row_hash": draw.randrange(3)}
        | {
            "version": draw.choice([None, 1, 2]),
            "is_tombstone": draw.random() < 0.1,
            "producer_id": draw.choice([7, 9]),
        }
        | {"excluded_by": draw.choice([[], [], ["a->b"], ["a->b", "a->c"]]), "is_replay": draw.random() < 0.2}
        for at in range(number)
    ]
    placed = [row | {"place": f"{row['partition']}:{row['offset']}", "is_produced": False} for row in rows]
    schema |= {"is_replay": pl.Boolean, "is_produced": pl.Boolean}
    return with_hash(pl.DataFrame(placed, schema=schema))


@dataclass
class Index:
    """A key index, and the runs it must be equal to, by window."""

    session: PgConnection
    storage: Storage
    runs: dict[int, pl.DataFrame] = field(default_factory=dict)
    revisions: dict[int, int] = field(default_factory=dict)

    def judge(self, number: int, copies: pl.DataFrame, *, has_versions: bool = False, compare: str = "v") -> None:
        """Write the run of a new revision of a window."""
        revision = self.revisions.get(number, 0) + 1
        window = Window(
            pipeline="demo", number=number, revision=revision, start=None, end=MOMENT, opened_at=MOMENT, ranges={}
        )
        windows.insert(self.session, window, request=f"{number}.{revision}", plan_only=False, configuration={})
        snapshot_manifests.commit_snapshot(self.session, window, "a", {"accounting": {"expired": 0}, "files": {}})
        run = with_reading(build_key_run(copies, has_versions=has_versions), {compare: "string"}, None)
        folder = f"demo/index/a/window={number}/bucket="
        parts = run.with_columns((pl.col("key_hi") % 2).alias("_b")).partition_by("_b", as_dict=True, include_key=False)
        files = {
            bucket_name(bucket, 2): write_index_file(
                self.storage, f"{folder}{bucket_name(bucket, 2)}", [stored_run(part, number)]
            )
            for (bucket,), part in parts.items()
        }
        runs.put_key_run(self.session, window, "a", files, len(run))
        self.session.commit()
        self.runs[number], self.revisions[number] = run, revision

    def paths(self) -> list[Path]:
        return sorted(path for path in Path(self.storage.root).rglob("part-*") if path.is_file())

    def files(self, without: Iterable[int] = ()) -> list[IndexFile]:
        """Return the files of the index, without some windows."""
        return [
            IndexFile(path=path, windows=tuple(at for at in run.windows if at not in {*without}))
            for run in standing_runs(self.session, TOPIC)
            for path in run.files.values()
        ]

    def says(self, keys: pl.DataFrame, without: Iterable[int] = ()) -> list[pl.DataFrame]:
        return answers(rows_of_keys(self.storage, self.files(without), keys))

    def must_say(self, keys: pl.DataFrame, without: Iterable[int] = ()) -> list[pl.DataFrame]:
        """Return what all runs say, each loaded whole, the oldest window first."""
        runs = [run for number, run in sorted(self.runs.items()) if number not in {*without}]
        columns = build_key_run(records(random.Random(0), 0, 0), has_versions=True)
        whole = pl.concat([with_reading(columns, {"v": "string"}, None).clear(), *runs], how="diagonal")
        return answers(whole.join(keys, on=HASH, how="semi", maintain_order="left"))


def standing_files(session: PgConnection) -> list[Path]:
    """Return the files of the index and the filters beside them."""
    files = [path for run in standing_runs(session, TOPIC) for path in run.files.values()]
    return [Path(path) for file in files for path in (file, filter_path(file))]


def names(paths: Iterable[Path]) -> list[str]:
    return sorted(path.name for path in paths)


def answers(run: pl.DataFrame) -> list[pl.DataFrame]:
    frames = [first_copies(run, is_later=False), first_and_latest_copies(run, is_later=True)]
    return [frame.sort(*HASH, maintain_order=True) for frame in frames]


def same(first: list[pl.DataFrame], other: list[pl.DataFrame]) -> bool:
    return all(left.equals(right) for left, right in zip(first, other, strict=True))


def hashes(*names: str) -> pl.DataFrame:
    return with_hash(pl.DataFrame({"key": names}, schema={"key": pl.String})).select(HASH)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path))


@pytest.mark.parametrize("seed", seeds(12, share=12))
def test_an_index_in_levels_says_what_all_runs_say_that_are_loaded_whole(
    journal: str, storage: Storage, seed: int
) -> None:
    draw = random.Random(seed)
    with connect(journal) as session:
        index = Index(session, storage)
        for step in range(1, 40):
            is_rerun = bool(index.runs) and draw.random() < 0.3
            number = draw.choice(sorted(index.runs)) if is_rerun else step
            rows = draw.choice([0, 1, 5, 30, 80])
            compare = draw.choice(["v", "v", "w"])
            index.judge(number, records(draw, 100 * step, rows), has_versions=draw.random() < 0.5, compare=compare)
            if draw.random() < 0.4:
                merge_runs(session, storage, TOPIC)
            if draw.random() < 0.2:
                remove_unused_files(session, storage, TOPIC, NO_GRACE)
            keys = hashes(*draw.sample(KEYS, draw.randrange(5)), "never")
            without = {at for at in index.runs if draw.random() < 0.2}
            assert same(index.says(keys), index.must_say(keys))
            assert same(index.says(keys, without), index.must_say(keys, without))
        assert len(standing_runs(session, TOPIC)) < len(index.runs)


@pytest.mark.extended
def test_the_number_of_runs_follows_the_logarithm_of_the_windows(journal: str, storage: Storage) -> None:
    draw = random.Random(1)
    with connect(journal) as session:
        index = Index(session, storage)
        most = 0
        for number in range(1, 130):
            index.judge(number, records(draw, 100 * number, 8))
            merge_runs(session, storage, TOPIC)
            most = max(most, len(standing_runs(session, TOPIC)))
        assert most <= 3 * 4
        assert sorted(at for run in standing_runs(session, TOPIC) for at in run.windows) == list(range(1, 130))
        remove_unused_files(session, storage, TOPIC, NO_GRACE)
        assert len(index.paths()) <= 2 * 2 * most
        assert same(index.says(hashes(*KEYS)), index.must_say(hashes(*KEYS)))


def test_files_of_merged_runs_stay_for_whoever_reads_them_and_are_removed_later(journal: str, storage: Storage) -> None:
    draw = random.Random(2)
    with connect(journal) as session:
        index = Index(session, storage)
        for number in range(1, 5):
            index.judge(number, records(draw, 100 * number, 8))
        index.judge(2, records(draw, 1000, 8))
        before, read = index.paths(), index.files()
        assert merge_runs(session, storage, TOPIC) == 1

        foreign_file = Path(storage.root) / "demo/index/a/merged/another/bucket=00of2/part-0.parquet"
        foreign_file.parent.mkdir(parents=True)
        foreign_file.write_bytes(b"of another journal")
        assert remove_unused_files(session, storage, TOPIC) == 0
        assert set(before) < set(index.paths())
        keys = hashes(*KEYS)
        assert same(answers(rows_of_keys(storage, read, keys)), index.must_say(keys))
        removed = remove_unused_files(session, storage, TOPIC, NO_GRACE)
        assert removed == len(before)
        foreign_file.unlink()
        assert not set(before) & set(index.paths())
        assert names(index.paths()) == names(standing_files(session))
        assert same(index.says(keys), index.must_say(keys))


def test_two_merges_at_once_leave_each_window_in_one_run(journal: str, storage: Storage) -> None:
    draw = random.Random(3)
    with connect(journal) as session:
        index = Index(session, storage)
        for number in range(1, 5):
            index.judge(number, records(draw, 100 * number, 8))
        inputs = standing_runs(session, TOPIC)
        merged = IndexedRun(files={}, rows=0, revisions=dict.fromkeys(range(1, 5), 1), windows=(1, 2, 3, 4))
        assert merge_runs(session, storage, TOPIC) == 1
        with connect(journal) as second:
            attempt = begin_merge(second, TOPIC)
            assert not commit_merge(second, TOPIC, attempt, merged, inputs)
            assert not commit_merge(second, TOPIC, attempt, merged, [*inputs[:2], *standing_runs(second, TOPIC)])
            assert not commit_merge(second, TOPIC, "forgotten", merged, standing_runs(second, TOPIC))
        [run] = standing_runs(session, TOPIC)
        assert (run.windows, run.merge) == ((1, 2, 3, 4), 1)
        assert same(index.says(hashes(*KEYS)), index.must_say(hashes(*KEYS)))


def test_a_window_whose_run_was_retired_and_is_in_no_merged_run_is_said(journal: str, storage: Storage) -> None:
    with connect(journal) as session:
        Index(session, storage).judge(1, records(random.Random(4), 0, 8))
        run_sql(journal, "update makewhole.key_run set retired_at = now()")
        with pytest.raises(CorruptionError) as caught:
            standing_runs(session, TOPIC)
    assert str(caught.value) == (
        "demo: no run of the key index has the keys of window 1 of a; write the index again: makewhole index rebuild "
        "demo"
    )


_MERGER = """
import os, signal, sys, traceback
from makewhole.journal.database import connect
from makewhole.journal.key_index import runs
from makewhole.key_index import files, merge
from makewhole.lake.storage import Storage
from tests.integration.journal.test_key_index import TOPIC

calls = last = 0


def dying(function):
    def inner(*args, **values):
        global calls
        for is_after in (False, True):
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)
            if not is_after:
                found = function(*args, **values)
        return found
    return inner


Storage.write_bytes = dying(Storage.write_bytes)
runs.IndexedTopic.run = dying(runs.IndexedTopic.run)
merge.IndexFileWriter.close = dying(merge.IndexFileWriter.close)
merge.commit_merge = dying(merge.commit_merge)



def attempt():
    try:
        with connect(sys.argv[1]) as session:
            merge.merge_runs(session, Storage(root=sys.argv[2]), TOPIC)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


for line in sys.stdin:
    last = int(line)
    child = os.fork()  # nothing of this process has a thread yet
    if child == 0:
        attempt()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextmanager
def merger(journal: str, storage: Storage) -> Iterator[Callable[[int], int]]:
    """Merge in a process of its own that is killed at a call, the first, second …; return its exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", _MERGER, journal, storage.root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(["", *sys.path])},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def attempt(last: int) -> int:
            orders.write(f"{last}\n")
            orders.flush()
            return int(answers.readline())

        yield attempt


@pytest.mark.extended
def test_a_merge_that_is_killed_anywhere_leaves_the_old_runs_or_the_new_one(journal: str, storage: Storage) -> None:
    """Takes long: a process is killed at each step."""
    draw = random.Random(5)
    killed = merged = 0
    with connect(journal) as session, merger(journal, storage) as attempt:
        index = Index(session, storage)
        last = number = 0
        while True:
            while not runs_to_merge([run.rows for run in standing_runs(session, TOPIC)]):
                number += 1
                index.judge(number, records(draw, 100 * number, 8))
            before = {run.merge for run in standing_runs(session, TOPIC)}
            session.commit()
            last += 1
            code = attempt(last)
            assert code in (0, -signal.SIGKILL)
            keys = hashes(*KEYS)
            assert same(index.says(keys), index.must_say(keys))
            merged += {run.merge for run in standing_runs(session, TOPIC)} != before
            if code == 0:
                break
            killed += 1
        assert killed > 10
        assert merged >= 2  # killed after the commit, and not at all
        remove_unused_files(session, storage, TOPIC, NO_GRACE)
        assert names(index.paths()) == names(standing_files(session))
        assert same(index.says(keys), index.must_say(keys))
