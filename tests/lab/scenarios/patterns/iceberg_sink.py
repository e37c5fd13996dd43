"""Run Iceberg's Connect sink and kill it, forget and set back its coordinator, and list its files twice (rows 141 to
144, and 147)."""

from dataclasses import replace

from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.lab.scenarios.patterns.sink_days import SinkShop, open_sink, repaired_and_undone
from tests.world.orders import Order
from tests.world.shop import STORE_HOP

_COVERED = ("tests/integration/kafka/test_iceberg_sink.py", "tests/integration/datasets/test_sink_windows.py")
_LOST, _TWICE = ("missing", "committed_before_written"), ("duplicate", "written_before_committed")


@scenario(
    row=141,
    name="Iceberg's sink, killed between its group and its table",
    happens=(
        "Iceberg's Kafka Connect sink commits the offsets of its tasks with the names of their files, and its "
        "coordinator commits the files to the table afterwards. It is killed in between. Its group has no lag, and the "
        "table lacks these records until it is started again."
    ),
    made=(
        "The sink in a Connect worker, one or two tasks; the catalogue's commit is held up until SIGKILL. A window "
        "while it is down, and one when it has run again."
    ),
    why=(
        "The control topic says which files no snapshot has yet: they are on their way, and handed over to the next "
        "window. Nothing is lost, nothing is repaired."
    ),
    covered_by=_COVERED,
)
def sink_killed(lab: Lab) -> Outcome:
    day = open_sink(lab)
    there = day.deliver()
    held = day.kill_before_its_commit()
    answer = day.lag()
    first = Window(
        label="a day at whose end it is down",
        judged=day.shop.day(),
        expected=day.found(day.whole(day.made), day.keys(held), "pending", "not_yet_consumed"),
    )
    day.sink.worker.start()
    later = day.deliver(1)
    day.sink.wait_for_all()
    following = day.whole(later)
    following = replace(following, matched={**following.matched, STORE_HOP: len(later) + len(held)})
    second = Window(label="the day after, when it runs again", judged=day.shop.day(1), expected=following)
    truth = f"Here its group is past {len(held)} of {len(there) + len(held)} orders that its table lacks."
    return Outcome(truth=truth, naive=(answer,), windows=(first, second))


@scenario(
    row=142,
    name="Iceberg's sink, whose coordinator's group is gone",
    happens=(
        "The sink is killed in the same place, and stays down for longer than the offsets of its coordinator's group "
        "are kept. Its coordinator begins at the end of the control topic, behind the events that name the files. They "
        "are in the warehouse, and in no snapshot."
    ),
    made="As before; the group of the coordinator is deleted before the sink is started again.",
    why=(
        "What the coordinator has passed is not on its way any more: it is missing, and the files are named. The rows "
        "are written from the records, in a snapshot of the plan's own, which an undo takes out again."
    ),
    covered_by=_COVERED,
)
def coordinator_forgotten(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    lost = day.kill_before_its_commit()
    day.sink.forget_coordinator()
    day.sink.worker.start()
    day.deliver()
    truth = f"Here the files with {len(lost)} of {len(day.made)} orders are in no snapshot, and never will be."
    return repaired_and_undone(day, truth, day.keys(lost), *_LOST)


@scenario(
    row=143,
    name="Iceberg's sink, whose table was rolled back",
    happens=(
        "An operator rolls the table back to an older snapshot. The sink goes on behind what it has committed: what "
        "was in the later snapshots never comes again, and its group has no lag."
    ),
    made="The sink loads some orders, and some more; the table is rolled back to the snapshot before these.",
    why="The group is past them, the coordinator has passed their files, and the table lacks them: they are missing.",
    covered_by=_COVERED,
)
def table_rolled_back(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    before = day.sink.lake.snapshot_id()
    assert before is not None
    lost = day.deliver()
    day.sink.lake.roll_back(before)
    day.deliver()
    truth = f"Here {len(lost)} of {len(day.made)} orders were in the table, and are not any more."
    return repaired_and_undone(day, truth, day.keys(lost), *_LOST)


@scenario(
    row=144,
    name="Iceberg's sink, whose coordinator is set back",
    happens=(
        "The group of the coordinator is set back to the beginning of the control topic. The newest snapshot of the "
        "sink says how far it has come, and it skips what it has committed."
    ),
    made="The group of the coordinator is set to 0 between two runs of the sink.",
    why="The sink itself skips the events; every record has one row.",
    covered_by=_COVERED,
)
def coordinator_set_back(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    day.sink.worker.end()
    day.sink.set_coordinator(0)
    day.sink.worker.start()
    day.deliver()
    day.sink.wait_for_all()
    truth = f"Here the coordinator reads the events of {len(day.made)} orders again."
    window = Window(judged=day.shop.day(), expected=day.whole(day.made))
    return Outcome(truth=truth, naive=(day.lag(),), windows=(window,))


@scenario(
    row=144,
    name="Iceberg's sink, whose files are listed twice",
    happens=(
        "A maintenance job commits to the table and expires all older snapshots, those of the sink among them: nothing "
        "says any more how far it has come. Then the group of its coordinator is set back, and it commits the files "
        "that it reads of once more. Each of their rows is there twice, in one file."
    ),
    made="Another writer's commit, expired snapshots, and the group of the coordinator set back to an older offset.",
    why=(
        "A row is known by its file and by which of the listings it is of (`listing 2`). The second listing is taken "
        "out of the table, and put back by an undo."
    ),
    covered_by=_COVERED,
)
def files_listed_twice(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    back_to = day.sink.committed(day.sink.names.coordinator, day.sink.names.control_topic)[0]
    twice = day.deliver()
    day.sink.worker.end()
    day.sink.write_and_expire()
    day.sink.set_coordinator(back_to)
    day.sink.worker.start()
    day.deliver()
    day.sink.wait_for_coordinator()
    listed = day.sink.table().inspect.files().column("file_path").to_pylist()
    assert len(listed) > len(set(listed))
    truth = f"Here the files with {len(twice)} of {len(day.made)} orders are listed twice."
    return repaired_and_undone(day, truth, day.keys(twice), *_TWICE)


@scenario(
    row=147,
    name="Iceberg's sink, whose killed tasks leave files behind",
    happens=(
        "A task of the sink is killed while it writes. Its file is in the warehouse, empty or whole, and in no "
        "snapshot; the records are read again, and written into another file."
    ),
    made="SIGKILL as soon as a file is in the warehouse that the table does not have; up to three times.",
    why="A table is what its snapshot lists. Files beside it are not read, and hold no rows of it.",
    covered_by=_COVERED,
)
def orphans_of_a_killed_task(lab: Lab) -> Outcome:
    day = open_sink(lab)
    day.deliver()
    kills = lab.random.randint(1, 3)
    for _ in range(kills):
        _kill_while_it_writes(day)
        day.sink.worker.start()
        day.sink.wait_for_all()
    orphans = day.sink.lake.files() - day.sink.lake.listed_files()
    assert orphans
    truth = f"Here it is killed {'once' if kills == 1 else f'{kills} times'} while it writes {len(day.made)} orders."
    window = Window(judged=day.shop.day(), expected=day.whole(day.made))
    return Outcome(truth=truth, naive=(day.lag(),), windows=(window,))


def _kill_while_it_writes(day: SinkShop) -> list[Order]:
    """Send orders, and kill the sink when it has begun a file for them."""
    sink, before = day.sink, day.sink.lake.files()
    made = day.send(day.some())
    day.lab.cluster.wait("a file that the table does not have", lambda: sink.lake.files() - before)
    sink.worker.kill()
    return made
