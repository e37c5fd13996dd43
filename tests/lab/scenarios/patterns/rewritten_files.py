"""Copy, rename and compact the files of a dataset on HDFS, rightly and not (rows 154, 155 and 159)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.lab.processes.file_writer import STEPS, FileOrder
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import lag, whole_day
from tests.lab.scenarios.patterns.file_days import day_with, of_keys, open_files, repaired_and_taken_back, write_day
from tests.world.files_lake import POSITIONED, FilesPlace

Rows = list[dict[str, Any]]


def _written(lab: Lab) -> tuple[FilesPlace, list[Any], dict[str, Rows]]:
    """Have a day written exactly; return its orders, and the rows of each file."""
    place = open_files(lab)
    made = write_day(lab, place, FileOrder.EXACT, 0, STEPS).made
    names = [name for name in place.names() if not name.startswith("_")]
    return place, made, {name: place.table(name).to_pylist() for name in names}


def _some(lab: Lab, files: Mapping[str, Rows]) -> list[str]:
    """Choose some files, at least two, and never all where there are more."""
    most = max(2, len(files) - 1)
    return sorted(lab.random.sample(sorted(files), lab.random.randint(2, most)))


def _ids(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


@scenario(
    row=154,
    name="Files that are copied, or committed twice",
    happens=(
        "Files of a dataset are copied beside it, or a committer that was tried again commits its files a second time, "
        "under the names of the second attempt. Readers read both."
    ),
    made="A real HDFS; some files again under another name, or in a folder below, byte by byte or in another order.",
    why=(
        "Each row is there twice, and the finding names both files. The later one is written again without its rows, "
        "as a whole and under its name."
    ),
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def files_copied(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    twice = [lab.random.choice(sorted(files))]
    for name in twice:
        again = lab.random.choice([f"copy-of-{name}", f"backup/{name}", f"part-00001-{name}"])
        if lab.random.random() < 0.5:
            place.store.publish(again, place.content(name))
        else:
            place.add(again, files[name][::-1], POSITIONED, compression="gzip")
    keys = [key for name in twice for key in _ids(files[name])]
    answer = lag(lab.shop)
    windows = repaired_and_taken_back(lab, place, made, of_keys(keys, "duplicate", "written_before_committed"))
    truth = f"Here {len(made)} orders were written to {len(files)} files, and {len(keys)} rows are there twice."
    return Outcome(truth=truth, naive=(answer,), windows=windows)


@scenario(
    row=154,
    name="Files that are renamed, and copied to where no reader looks",
    happens="Files of a dataset are moved into folders, and get other names; copies are kept under `_backup`.",
    made="A real HDFS; some files under another name, the old one gone; others once more behind `_` and `.`.",
    why="A row is known by its key or its position, and not by its file. What no reader looks at does not count.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def files_renamed(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    for name in _some(lab, files):
        content = place.content(name)
        place.store.publish(lab.random.choice([f"_backup/{name}", f".{name}.inprogress", f"_tmp/0/{name}"]), content)
        if lab.random.random() < 0.7:
            place.store.publish(lab.random.choice([f"old/{name}", f"part-{name}"]), content)
            place.store.remove(name)
    window = Window(judged=lab.shop.day(), expected=whole_day(made))
    truth = f"Here {len(made)} orders were written to {len(files)} files, and each is read once."
    return Outcome(truth=truth, naive=(lag(lab.shop),), windows=(window,))


def _compact(
    place: FilesPlace, files: Mapping[str, Rows], inputs: Sequence[str], rows: Rows, left: Sequence[str]
) -> None:
    """Write a file in the place of others, but for those that are left."""
    place.add(f"compacted-{len(inputs)}.parquet", rows, POSITIONED)
    for name in inputs:
        if name not in left:
            place.store.remove(name)


@scenario(
    row=155,
    name="A compaction of files",
    happens="Small files are written into one, and removed.",
    made="A real HDFS; some files of a day in one, in the order of their keys.",
    why="Positions and keys are where they were; that the file is another one changes nothing.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def files_compacted(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    inputs = _some(lab, files)
    _compact(
        place, files, inputs, sorted((row for name in inputs for row in files[name]), key=lambda row: row["id"]), ()
    )
    window = Window(judged=lab.shop.day(), expected=whole_day(made))
    truth = f"Here {len(inputs)} of {len(files)} files were written into one, with all of their rows."
    return Outcome(truth=truth, naive=(lag(lab.shop),), windows=(window,))


@scenario(
    row=155,
    name="A compaction of files that drops rows",
    happens="Small files are written into one, without some of their rows, and removed. No lag shows that.",
    made="A real HDFS; some files of a day in one that lacks rows. `missing: upsert`, and the repair is taken back.",
    why="The group is past records whose positions are holes. A file of the plan's own brings the rows.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def compaction_drops_rows(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    inputs = _some(lab, files)
    rows = [row for name in inputs for row in files[name]]
    dropped = _ids(lab.random.sample(rows, lab.random.randint(1, len(rows) - 1)))
    _compact(place, files, inputs, [row for row in rows if row["id"] not in dropped], ())
    answer = lag(lab.shop)
    verdicts = of_keys(sorted(dropped), "missing", "committed_before_written")
    windows = repaired_and_taken_back(lab, place, made, verdicts)
    truth = (
        f"Here {len(inputs)} of {len(files)} files were written into one, without {len(dropped)} of {len(rows)} rows."
    )
    return Outcome(truth=truth, naive=(answer,), windows=windows)


@scenario(
    row=155,
    name="A compaction of files that leaves its inputs",
    happens="Small files are written into one, and the job dies before it has removed all of them. Readers read both.",
    made="A real HDFS; some files of a day in one, with some of them left. `duplicate: quarantine`, and the repair is "
    "taken back.",
    why="Each row of a file that was left is there twice, and the finding names both files.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def compaction_leaves_its_inputs(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    inputs = _some(lab, files)
    left = lab.random.sample(inputs, lab.random.randint(1, len(inputs) - 1))
    _compact(place, files, inputs, [row for name in inputs for row in files[name]], left)
    answer = lag(lab.shop)
    keys = [key for name in left for key in _ids(files[name])]
    windows = repaired_and_taken_back(lab, place, made, of_keys(keys, "duplicate", "written_before_committed"))
    truth = f"Here {len(inputs)} files were written into one, and {len(left)} of them left, with {len(keys)} rows."
    return Outcome(truth=truth, naive=(answer,), windows=windows)


@scenario(
    row=159,
    name="A file that comes late, when its rows were written again",
    happens=(
        "The group is past a file that is on its way: a slow upload, a rename that hangs. What it holds is missing, "
        "and is repaired. Then the file comes."
    ),
    made="A real HDFS; a file is put aside before the window, and back behind its repair, under another name.",
    why="The next window reads what has come since, by the list of files that the window before has seen.",
    covered_by=("tests/integration/files/test_files_windows.py",),
)
def file_comes_late(lab: Lab) -> Outcome:
    place, made, files = _written(lab)
    late = lab.random.choice(sorted(files))
    content = place.content(late)
    place.store.remove(late)
    keys = _ids(files[late])
    answer, shop = lag(lab.shop), lab.shop
    first = shop.judge_and_repair(0)
    expected = day_with(made, of_keys(keys, "missing", "committed_before_written"), "repaired")
    repaired = Window(label="repaired", judged=shop.verified_with_outcomes(first), expected=expected)
    place.store.publish(f"late/{late}", content)
    second = write_day(lab, place, FileOrder.EXACT, 1, [])
    context = shop.judge_and_repair(1)
    verdicts = of_keys(keys, "duplicate", "late_original")
    right = replace(day_with(second.made, verdicts, "repaired"), matched=whole_day(second.made).matched)
    again = Window(label="the file has come", judged=shop.verified_with_outcomes(context), expected=right)
    assert sorted(_ids(place.rows())) == sorted(order["id"] for order in [*made, *second.made])
    truth = f"Here one of {len(files)} files comes late, with {len(keys)} of {len(made)} orders."
    return Outcome(truth=truth, naive=(answer,), windows=(repaired, again))
