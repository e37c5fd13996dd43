"""Write Parquet files with their offsets to HDFS, exactly and not, and kill the writer anywhere (rows 151 to 153)."""

from tests.lab.processes.file_writer import STEPS, FileOrder
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import lag, whole_day
from tests.lab.scenarios.patterns.file_days import of_keys, open_files, repaired_and_taken_back, truth, write_day


def _broken(lab: Lab, order: FileOrder, verdict: str, cause: str) -> Outcome:
    """Judge, repair and take back a day whose writer is killed between its two steps."""
    place = open_files(lab)
    written = write_day(lab, place, order, 0, ["published"])
    answer = lag(lab.shop)
    windows = repaired_and_taken_back(lab, place, written.made, of_keys(written.hit, verdict, cause))
    return Outcome(truth=truth(written), naive=(answer,), windows=windows)


@scenario(
    row=151,
    name="Files on HDFS with their offsets",
    happens=(
        "A consumer writes Parquet files whose names say which offsets they hold. It claims a range, writes it under a "
        "temporary name, renames it for one of many, and goes on behind the last file. It is killed anywhere."
    ),
    made="The writer of `examples/files` in a process of its own, a real NameNode and DataNode; SIGKILL at any step.",
    why="The files are the progress: what has its name is whole, and its offsets are not written again.",
    covered_by=("tests/integration/files/test_exact_writer.py",),
)
def files_with_offsets(lab: Lab) -> Outcome:
    place = open_files(lab)
    written = write_day(lab, place, FileOrder.EXACT, 0, STEPS)
    window = Window(judged=lab.shop.day(), expected=whole_day(written.made))
    return Outcome(truth=truth(written), naive=(lag(lab.shop),), windows=(window,))


@scenario(
    row=152,
    name="Files whose offsets are committed before they have their names",
    happens=(
        "A consumer goes by its group. It commits the offsets of a file, and then gives the file its name. It is "
        "killed in between: whoever starts it again has it go on behind these records, and its group has no lag."
    ),
    made=(
        "A writer in a process of its own, on a real HDFS; SIGKILL between the commit and the rename. `missing: "
        "upsert`, and then the repair is taken back."
    ),
    why="What the group is past and no file holds is missing. A file of the plan's own brings it, visible as a whole.",
    covered_by=("tests/integration/files/test_files_writer.py",),
)
def committed_before_renamed(lab: Lab) -> Outcome:
    return _broken(lab, FileOrder.COMMIT_FIRST, "missing", "committed_before_written")


@scenario(
    row=153,
    name="Files that are written again under another name",
    happens=(
        "A consumer goes by its group, and gives files names that are drawn. It is killed behind the rename: whoever "
        "starts it again has it write the same records into another file."
    ),
    made=(
        "A writer in a process of its own, on a real HDFS; SIGKILL between the rename and the commit. "
        "`duplicate: quarantine`, and then the repair is taken back."
    ),
    why=(
        "Each row is there in two files, which the finding names. The second file is written again without it, as a "
        "whole and under its name, as long as it is what the plan saw."
    ),
    covered_by=("tests/integration/files/test_files_writer.py",),
)
def written_under_another_name(lab: Lab) -> Outcome:
    return _broken(lab, FileOrder.BY_THE_GROUP, "duplicate", "written_before_committed")
