"""Damage pages of files, and remove files that a table or a manifest lists (rows 162 and 163)."""

import io
from dataclasses import replace

import pyarrow.parquet as pq

from tests.lab.judged import Judged
from tests.lab.processes.file_writer import FileOrder
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import lag, whole_day
from tests.lab.scenarios.patterns.file_days import (
    NOT_KNOWN,
    day_with,
    of_keys,
    open_files,
    repaired_and_taken_back,
    write_day,
)
from tests.lab.scenarios.patterns.sink_days import open_sink, repaired_and_undone
from tests.world.files_lake import POSITIONED, rows_of, spoil
from tests.world.orders import orders

_LOST = ("missing", "committed_before_written")
_UNREAD = (("prepared_transaction", None, None, None), ("unreadable_files", None, None, None))


def _not_known(day: Judged) -> Judged:
    """Return a day beside files that cannot be read."""
    return replace(day, state=NOT_KNOWN, reason="", incidents=_UNREAD, messages=())


@scenario(
    row=162,
    name="A file whose pages do not decode",
    happens=(
        "A disk or a machine flips a bit in the middle of a file. Its footer is whole, so that it is listed "
        "and counted as any other; a reader of one column stops at one page, and one of other columns notices nothing."
    ),
    made=(
        "A real HDFS; a bit of a page of a column of one group of rows, in a file of a day. Then it is restored, or "
        "removed and its rows repaired."
    ),
    why=(
        "The rows of the other groups are there; what is missing and may be in the broken one waits, by name. The "
        "window is not known, and all else in it is judged."
    ),
    covered_by=("tests/integration/files/test_spoilt_files.py", "tests/integration/datasets/test_spoilt_data_files.py"),
)
def pages_do_not_decode(lab: Lab) -> Outcome:
    place, shop = open_files(lab), lab.shop
    made = write_day(lab, place, FileOrder.EXACT, 0, []).made
    name = lab.random.choice([name for name in place.names() if not name.startswith("_")])
    rows, size = place.table(name).to_pylist(), lab.random.randint(1, 4)
    place.add(name, rows, POSITIONED, row_group_size=size, write_page_checksum=True)
    group = lab.random.randrange((len(rows) + size - 1) // size)
    content = spoil(place, name, lab.random.choice(["id", "at", "amount", "o"]), group)
    answer = lag(shop)
    broken = [row["id"] for row in rows[group * size : (group + 1) * size]]
    right = _not_known(day_with(made, of_keys(broken, "pending", "in_doubt"), ""))
    unread = Window(label="while pages do not decode", judged=shop.day(), expected=right)
    is_restored = lab.random.random() < 0.5
    if is_restored:
        place.store.replace(name, content)
        after: tuple[Window, ...] = (Window(label="when it is restored", judged=shop.day(), expected=whole_day(made)),)
    else:
        place.store.remove(name)
        after = repaired_and_taken_back(lab, place, made, of_keys([row["id"] for row in rows], *_LOST))
    truth = (
        f"Here a group of {len(broken)} rows does not decode, in a file with {len(rows)} of {len(made)} orders; then "
        f"that is {'restored' if is_restored else 'removed'}."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(unread, *after))


@scenario(
    row=163,
    name="A data file that the sink's table lists is gone",
    happens=(
        "What removes old or orphaned files, or a person, removes a data file that the current snapshot lists. The "
        "sink's group has no lag, and the metadata still count the rows."
    ),
    made=(
        "The file of a commit removed from the warehouse while the sink runs. Then it is restored, or taken out of the "
        "table and its rows repaired."
    ),
    why=(
        "The file is named with its snapshot. What is missing and may be in it waits, however long; nothing is called "
        "missing for it, all else is judged, and nothing is tried again for hours."
    ),
    covered_by=("tests/integration/datasets/test_gone_data_files.py",),
)
def data_file_gone(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    day.deliver()
    table = day.sink.table()
    lost = lab.random.choice([task.file for task in table.scan().plan_files()])
    with table.io.new_input(lost.file_path).open() as file:
        content = file.read()
    held = set(pq.read_table(io.BytesIO(content), columns=["id"]).column("id").to_pylist())
    keys = day.keys([order for order in day.made if order["id"] in held])
    table.io.delete(lost.file_path)
    answer = day.lag()
    verdicts = day.found(day.whole(day.made), keys, "pending", "in_doubt")
    judged = day.shop.day()
    judged = replace(judged, reason=str(judged.reason).replace(f"{table.location()}/", ""))
    gone = Window(label="while it is gone", judged=judged, expected=_not_known(verdicts))
    truth = f"Here a file with {len(keys)} of {len(day.made)} orders is removed; then it is "
    if lab.random.random() < 0.5:
        with table.io.new_output(lost.file_path).create() as file:
            file.write(content)
        whole = Window(label="when it is restored", judged=day.shop.day(), expected=day.whole(day.made))
        return Outcome(truth=f"{truth}restored.", naive=(answer,), windows=(gone, whole))
    with day.sink.table().transaction() as change, change.update_snapshot().overwrite() as files:
        files.delete_data_file(lost)
    outcome = repaired_and_undone(day, f"{truth}taken out of the table.", keys, *_LOST)
    return replace(outcome, windows=(gone, *outcome.windows))


@scenario(
    row=163,
    name="A file that a manifest of a dataset names is gone",
    happens="A file that a job has committed by its manifest is removed, and the manifest still names it.",
    made="A real HDFS, `committed: manifest`; one of several files removed. Then it, or its manifest, is set right.",
    why="What it may hold waits, by name, and is missing only once no manifest names it.",
    covered_by=("tests/integration/files/test_gone_files.py",),
)
def named_file_gone(lab: Lab) -> Outcome:
    place, shop = open_files(lab, has_group=False, committed="manifest"), lab.shop
    made = orders(range(lab.random.randint(30, 60)))
    shop.write("outbox", made)
    shop.send(made)
    jobs = lab.random.randint(2, 4)
    for job in range(jobs):
        rows = [{**row, "p": None, "o": None} for row in rows_of(made[job::jobs])]
        place.add(f"job-{job}/a.parquet", rows, POSITIONED)
        place.store.publish(f"job-{job}/_manifest.json", b'["a.parquet"]')
    lost = lab.random.randrange(jobs)
    path, keys = f"job-{lost}/a.parquet", [order["id"] for order in made[lost::jobs]]
    content = place.content(path)
    place.store.remove(path)
    right = _not_known(day_with(made, of_keys(keys, "pending", "in_doubt"), ""))
    gone = Window(label="while it is gone", judged=shop.day(), expected=right)
    truth = f"Here one of {jobs} files is removed, with {len(keys)} of {len(made)} orders; then "
    if lab.random.random() < 0.5:
        place.store.replace(path, content)
        whole = Window(label="when it is restored", judged=shop.day(), expected=whole_day(made))
        return Outcome(truth=f"{truth}it is restored.", naive=(), windows=(gone, whole))
    place.store.remove(f"job-{lost}/_manifest.json")
    repaired = repaired_and_taken_back(lab, place, made, of_keys(keys, "missing", "lost_after_topic"))
    return Outcome(truth=f"{truth}its manifest is, too.", naive=(), windows=(gone, *repaired))
