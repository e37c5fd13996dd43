"""Leave files of a dataset on HDFS under temporary names, cut off, and without a marker (rows 156 to 158)."""

from collections.abc import Sequence
from dataclasses import replace

from tests.lab.processes.file_writer import STEPS, FileOrder
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import lag, whole_day
from tests.lab.scenarios.patterns.file_days import (
    NOT_KNOWN,
    day_with,
    of_keys,
    open_files,
    repaired_and_taken_back,
    truth,
    write_day,
)
from tests.world.files_lake import POSITIONED, FilesPlace, rows_of
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=156,
    name="Files that a dead writer left under temporary names",
    happens=(
        "A consumer writes a file under a temporary name, commits its offsets, and renames the file. It is killed in "
        "between: whoever starts it again has it go on behind these records. The file stays, whole, and no reader "
        "looks at it."
    ),
    made=(
        "A writer in a process of its own, on a real HDFS; SIGKILL between the commit and the rename. `missing: "
        "upsert`, and then the repair is taken back."
    ),
    why=(
        "A temporary name proves nothing: the file may be half of an attempt, or its rows may be elsewhere. The rows "
        "are written by the records at their positions; the file stays as it is."
    ),
    covered_by=("tests/integration/files/test_files_reading.py",),
)
def files_left_under_temporary_names(lab: Lab) -> Outcome:
    place = open_files(lab)
    written = write_day(lab, place, FileOrder.COMMIT_BEFORE_RENAME, 0, ["published"])
    left = [name for name in place.names() if name.rpartition("/")[2].startswith(".part-")]
    held = [row["id"] for name in left for row in place.table(name).to_pylist()]
    assert sorted(held) == sorted(set(written.hit))
    answer = lag(lab.shop)
    verdicts = of_keys(written.hit, "missing", "committed_before_written")
    windows = repaired_and_taken_back(lab, place, written.made, verdicts)
    assert [name for name in left if name not in place.names()] == []
    return Outcome(truth=truth(written), naive=(answer,), windows=windows)


@scenario(
    row=157,
    name="A file that cannot be read",
    happens=(
        "A file is there under its name and is no whole Parquet file: an upload was cut off, or its writer writes in "
        "place. What it holds is not known, so that neither its rows are missing nor all others are there once."
    ),
    made="A real HDFS; a file of a day cut off anywhere. Then it is restored, or removed and its rows repaired.",
    why=(
        "What is missing may be in it and waits, by name; all else is judged, and the window is not known. Once the "
        "file is whole, or gone, the window is judged again."
    ),
    covered_by=("tests/integration/files/test_unreadable_files.py",),
)
def file_cannot_be_read(lab: Lab) -> Outcome:
    place, shop = open_files(lab), lab.shop
    made = write_day(lab, place, FileOrder.EXACT, 0, STEPS).made
    name = lab.random.choice([name for name in place.names() if not name.startswith("_")])
    content, keys = place.content(name), [row["id"] for row in place.table(name).to_pylist()]
    place.store.replace(name, content[: lab.random.randint(0, len(content) - 1)])
    answer = lag(shop)
    held = of_keys(keys, "pending", "in_doubt")
    right = replace(
        day_with(made, held, ""),
        state=NOT_KNOWN,
        reason="",
        incidents=(("prepared_transaction", None, None, None), ("unreadable_files", None, None, None)),
        messages=(),
    )
    unread = Window(label="while it cannot be read", judged=shop.day(), expected=right)
    is_restored = lab.random.random() < 0.5
    if is_restored:
        place.store.replace(name, content)
        after: tuple[Window, ...] = (Window(label="when it is restored", judged=shop.day(), expected=whole_day(made)),)
    else:
        place.store.remove(name)
        after = repaired_and_taken_back(lab, place, made, of_keys(keys, "missing", "committed_before_written"))
    what = f"one file cannot be read, with {len(keys)} of {len(made)} orders; then it is "
    return Outcome(
        truth=f"Here {what}{'restored' if is_restored else 'removed'}.", naive=(answer,), windows=(unread, *after)
    )


def _write(place: FilesPlace, job: int, made: Sequence[Order]) -> None:
    """Write the file of a job, whose rows carry no positions."""
    place.add(f"job-{job}/a.parquet", [{**row, "p": None, "o": None} for row in rows_of(made)], POSITIONED)


def _end(place: FilesPlace, job: int) -> None:
    """Set the marker of a job."""
    place.store.publish(f"job-{job}/_SUCCESS", b"")


@scenario(
    row=158,
    name="Files without the marker of their job",
    happens=(
        "Jobs write their files into folders, and set a marker at their end. One has not ended when the window is "
        "judged: it is slow, or it died, and is run again into another folder."
    ),
    made="A real HDFS, `committed: _SUCCESS`; one of several jobs without a marker, which comes, or has a successor.",
    why="What the files of an unfinished job hold waits, by name, for the next window: neither missing nor there.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def files_without_marker(lab: Lab) -> Outcome:
    place, shop = open_files(lab, has_group=False, committed="_SUCCESS"), lab.shop
    made = orders(range(lab.random.randint(30, 60)))
    shop.write("outbox", made)
    shop.send(made)
    jobs = lab.random.randint(2, 4)
    late = lab.random.randrange(jobs)
    for job in range(jobs):
        _write(place, job, made[job::jobs])
        if job != late:
            _end(place, job)
    keys = [order["id"] for order in made[late::jobs]]
    held = of_keys(keys, "pending", "in_doubt")
    right = replace(day_with(made, held, ""), incidents=(("prepared_transaction", None, None, None),), messages=())
    waiting = Window(label="before its job has ended", judged=shop.day(), expected=right)
    if lab.random.random() < 0.5:
        place.store.remove(f"job-{late}/a.parquet")
        _write(place, jobs, made[late::jobs])
        _end(place, jobs)
    else:
        _end(place, late)
    second = orders(range(1000, 1000 + lab.random.randint(10, 20)), 1)
    shop.write("outbox", second)
    shop.send(second)
    _write(place, 9, second)
    _end(place, 9)
    both = {LEDGER_HOP: len(second), STORE_HOP: len(second) + len(keys)}
    ended = Window(label="the day after", judged=shop.day(1), expected=replace(whole_day(second), matched=both))
    truth_of = f"Here one of {jobs} jobs has not set its marker, with {len(keys)} of {len(made)} orders."
    return Outcome(truth=truth_of, naive=(), windows=(waiting, ended))
