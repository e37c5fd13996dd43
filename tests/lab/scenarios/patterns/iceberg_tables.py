"""Compact, rename and replace the table of Iceberg's Connect sink while it runs (rows 145 and 146)."""

from collections.abc import Sequence

import pyarrow as pa

from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.sink_days import SinkShop, open_sink, repaired_and_undone
from tests.world.orders import Order

_LOST = ("missing", "committed_before_written")


@scenario(
    row=145,
    name="A compaction of the sink's table",
    happens="A job writes the many small files of the sink again as few, and expires the snapshots before it.",
    made="The rows are read and written again as one file, in one snapshot, between commits of the running sink.",
    why="Rows are known by the positions of their records, in whichever file they are.",
)
def compacted(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    day.deliver()
    _compact(day, [])
    day.deliver()
    day.sink.wait_for_all()
    truth = f"Here {len(day.made)} orders are written again."
    window = Window(judged=day.shop.day(), expected=day.whole(day.made))
    return Outcome(truth=truth, naive=(day.lag(),), windows=(window,))


@scenario(
    row=145,
    name="A compaction that drops rows",
    happens=(
        "A job that compacts the table works from a list of rows that is older than the table, or leaves out what it "
        "takes for repeated. The rows are gone, and the sink's group has no lag."
    ),
    made="As before, without some of the rows, which are known by a key or, without any, by their positions.",
    why=(
        "Each offset that holds a record has to have a row: with `position` alone holes are missing, without any key. "
        "They are written from the records, and taken out by an undo."
    ),
)
def compaction_that_drops_rows(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    day.deliver()
    lost = lab.random.sample(day.made, lab.random.randint(2, 9))
    _compact(day, lost)
    day.deliver()
    truth = f"Here {len(lost)} of {len(day.made)} rows are not written again."
    return repaired_and_undone(day, truth, day.keys(lost), *_LOST)


def _compact(day: SinkShop, lost: Sequence[Order]) -> None:
    """Write the table again in one snapshot, without some of its rows; expire those before it."""
    table = day.sink.table()
    rows = table.scan().to_arrow()
    kept = [key not in {order["id"] for order in lost} for key in rows.column("id").to_pylist()]
    table.overwrite(rows.filter(pa.array(kept)))
    day.sink.lake.expire_older()


@scenario(
    row=146,
    name="The sink's table is renamed for a while",
    happens=(
        "The sink is down, past records whose files are in no snapshot, and its table has another name for a while. It "
        "is started again: its coordinator finds no table, skips the files with a warning, and notes that it has. The "
        "table gets its name back, and the sink goes on."
    ),
    made="Killed before its commit; the table renamed in the catalogue until the coordinator has passed the files.",
    why="The coordinator has passed what names the files, and no snapshot has them: the records are missing.",
)
def table_renamed(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    lost = day.kill_before_its_commit()
    with day.sink.lake.renamed():
        day.sink.worker.start()
        day.sink.wait_until_the_coordinator_is_past()
    day.deliver()
    truth = f"Here the files with {len(lost)} of {len(day.made)} orders are skipped."
    return repaired_and_undone(day, truth, day.keys(lost), *_LOST)


@scenario(
    row=146,
    name="The sink's table is replaced",
    happens=(
        "An operator drops the table and creates it again, to change it. The sink goes on behind what it has committed "
        "to the old one, and the new one begins where the old one ended."
    ),
    made="The table dropped and created again between two commits of the running sink.",
    why="The group is past the records and the new table lacks them: all that the old one had is missing.",
)
def table_replaced(lab: Lab) -> Outcome:
    day = open_sink(lab)
    lost = day.deliver()
    day.sink.replace_table()
    day.deliver()
    truth = f"Here the new table lacks {len(lost)} of {len(day.made)} orders, which the old one had."
    return repaired_and_undone(day, truth, day.keys(lost), *_LOST)
