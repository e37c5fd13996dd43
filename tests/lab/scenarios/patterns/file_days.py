"""Hold what scenarios of datasets of files share: a shop on HDFS, a day that is written there, and what is right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from makewhole.model.window import WindowState
from tests.lab.judged import Judged
from tests.lab.processes.file_writer import FileOrder, FileWriting, write_files
from tests.lab.scenario import Lab, Window
from tests.lab.scenarios.patterns.days import GAPS, kills_of_a_day, whole_day
from tests.world.environment import set_connection
from tests.world.files_lake import FilesPlace
from tests.world.hdfs_servers import HdfsServers
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

NOT_KNOWN = WindowState.NOT_KNOWN.value
_REPAIR = "{missing: upsert, duplicate: quarantine}"


@dataclass(frozen=True, kw_only=True)
class Written:
    """A day that was written. `hit`: the keys of the files at which the writer was killed."""

    made: list[Order]
    hit: list[str]
    kills: int


def open_files(lab: Lab, *, has_group: bool = True, **more: str) -> FilesPlace:
    """Start HDFS, and open a shop whose warehouse is a dataset there; `more` is what that has besides."""
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
        **more,
    }
    group = {"consumer_group": lab.shop.group} if has_group else {}
    hop = {**group, "compensation": _REPAIR, "leave": "[p, o]"}
    lab.shop.open_shop(partitions=lab.random.randint(1, 3), hop=hop, more_points={"warehouse": warehouse})
    return place


def write_day(lab: Lab, place: FilesPlace, order: FileOrder, day: int, steps: Sequence[str]) -> Written:
    """Send a day of orders and have it written, by a writer that is killed at some of these steps."""
    made = orders(range(1000 * day, 1000 * day + lab.random.randint(30, 60)), day)
    lab.shop.write("outbox", made)
    lab.shop.send(made)
    most, kills = kills_of_a_day(lab, made, is_killed=bool(steps))
    writing, hit = FileWriting(place=place, order=order, most=most), list[str]()
    for _ in range(kills):
        at = (lab.random.randint(0, 1), lab.random.choice(steps))
        hit += write_files(lab.shop, writing, killed_at=at)[-1].notes
    write_files(lab.shop, writing)
    return Written(made=made, hit=hit, kills=kills)


def truth(written: Written) -> str:
    times = "once" if written.kills == 1 else f"{written.kills} times"
    return (
        f"Here the writer of {len(written.made)} orders is killed {times}, with {len(set(written.hit))} in its hands."
    )


def day_with(made: Sequence[Order], verdicts: Found, outcome: str) -> Judged:
    """Return a certified day of orders of which some were found otherwise, with what became of these."""
    return replace(
        whole_day(made),
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(verdicts)},
        found={STORE_HOP: verdicts},
        messages=(f"{STORE_HOP}: {len(verdicts)} {outcome}",),
    )


def repaired_and_taken_back(
    lab: Lab, place: FilesPlace, made: Sequence[Order], verdicts: Found
) -> tuple[Window, Window]:
    """Judge and repair the first day, and take its repair back: the files hold the same rows as before then."""
    shop, before = lab.shop, place.rows()
    context = shop.judge_and_repair(0)
    expected = day_with(made, verdicts, "repaired")
    repaired = Window(label="found and repaired", judged=shop.verified_with_outcomes(context), expected=expected)
    after = [row["id"] for row in place.rows()]
    assert sorted(after) == sorted(order["id"] for order in made)
    undone = replace(expected, state=GAPS, reason="", messages=(f"{STORE_HOP}: {len(verdicts)} open",))
    back = Window(label="its repair taken back", judged=shop.undone(context), expected=undone)
    assert place.rows() == before
    return repaired, back


def of_keys(keys: Iterable[str], verdict: str, cause: str) -> Found:
    """Return the one verdict that is right of some keys."""
    return dict.fromkeys(dict.fromkeys(keys), (verdict, cause))
