"""Write Parquet files with their offsets to HDFS, exactly and not, and kill the writer anywhere (rows 151 to 153)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.processes.file_writer import STEPS, FileOrder, FileWriting, write_files
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.patterns.days import GAPS, whole_day
from tests.lab.shop import LabShop
from tests.world.environment import set_connection
from tests.world.files_lake import FilesPlace
from tests.world.hdfs_servers import HdfsServers
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings
from tests.world.shop import LEDGER_HOP, STORE_HOP

_REPAIR = "{missing: upsert, duplicate: quarantine}"


@dataclass(frozen=True, kw_only=True)
class _Written:
    """A day that was written. `hit`: the keys of the files at which the writer was killed."""

    made: list[Order]
    hit: list[str]
    kills: int


def _open(lab: Lab) -> FilesPlace:
    """Start HDFS, and open a shop whose warehouse is a dataset there."""
    servers = lab.ends.enter_context(HdfsServers(lab.shop.folder / "hdfs"))
    place = FilesPlace(path="/dw/orders", fields={"conn_type": "hdfs", "host": "127.0.0.1", "port": servers.port})
    set_connection(lab.patch, "lake", place.described)
    warehouse: Settings = {
        "kind": "dataset",
        "connection": "lake",
        "format": "parquet",
        "path": place.path,
        "key": "id",
        "time": "at",
        "position": "{partition: p, offset: o}",
    }
    hop = {"consumer_group": lab.shop.group, "compensation": _REPAIR, "leave": "[p, o]"}
    lab.shop.open_shop(partitions=lab.random.randint(1, 3), hop=hop, more_points={"warehouse": warehouse})
    return place


def _day(lab: Lab, place: FilesPlace, order: FileOrder, day: int, steps: Sequence[str]) -> _Written:
    """Send a day of orders and have it written, by a writer that is killed at some of these steps."""
    made = orders(range(1000 * day, 1000 * day + lab.random.randint(30, 60)), day)
    lab.shop.write("outbox", made)
    lab.shop.send(made)
    writing = FileWriting(place=place, order=order, most=lab.random.randint(3, 8))
    kills, hit = lab.random.randint(1, 3) if steps else 0, list[str]()
    for _ in range(kills):
        at = (lab.random.randint(0, 1), lab.random.choice(steps))
        hit += write_files(lab.shop, writing, killed_at=at)[-1].notes
    write_files(lab.shop, writing)
    return _Written(made=made, hit=hit, kills=kills)


def _lag(shop: LabShop) -> Naive:
    return Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL)


def _truth(written: _Written) -> str:
    times = "once" if written.kills == 1 else f"{written.kills} times"
    return (
        f"Here the writer of {len(written.made)} orders is killed {times}, with {len(set(written.hit))} in its hands."
    )


def _hit(written: _Written, verdict: str, cause: str, outcome: str) -> Judged:
    keys = dict.fromkeys(written.hit)
    return replace(
        whole_day(written.made),
        matched={LEDGER_HOP: len(written.made), STORE_HOP: len(written.made) - len(keys)},
        found={STORE_HOP: dict.fromkeys(keys, (verdict, cause))},
        messages=(f"{STORE_HOP}: {len(keys)} {outcome}",),
    )


def _broken(lab: Lab, order: FileOrder, verdict: str, cause: str) -> Outcome:
    """Judge, repair and take back a day whose writer is killed between its two steps."""
    place, shop = _open(lab), lab.shop
    written = _day(lab, place, order, 0, ["published"])
    answer, before = _lag(shop), place.rows()
    context = shop.judge_and_repair(0)
    expected = _hit(written, verdict, cause, "repaired")
    killed = Window(label="a day on which it is killed", judged=shop.verified_with_outcomes(context), expected=expected)
    undone = replace(expected, state=GAPS, reason="", messages=(f"{STORE_HOP}: {len(set(written.hit))} open",))
    back = Window(label="its repair taken back", judged=shop.undone(context), expected=undone)
    assert place.rows() == before
    return Outcome(truth=_truth(written), naive=(answer,), windows=(killed, back))


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
    place = _open(lab)
    written = _day(lab, place, FileOrder.EXACT, 0, STEPS)
    window = Window(judged=lab.shop.day(), expected=whole_day(written.made))
    return Outcome(truth=_truth(written), naive=(_lag(lab.shop),), windows=(window,))


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
