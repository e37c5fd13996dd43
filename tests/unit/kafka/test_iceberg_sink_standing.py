"""Test how far Iceberg's sink is held to be, by what its group, coordinator, control topic and table say."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from makewhole.kafka.iceberg_sink.control_topic import ControlLog, Coordinator
from makewhole.kafka.iceberg_sink.events import ControlPosition, FilesWritten, TaskComplete
from makewhole.kafka.iceberg_sink.standing import SinkSources, sink_standing
from makewhole.tables.progress import SinkCommit

pytestmark = pytest.mark.unit

END = 20


def at(offset: int, partition: int = 0) -> ControlPosition:
    return ControlPosition(partition=partition, offset=offset)


def written(offset: int, records: int, table: str = "dw.orders", partition: int = 0) -> FilesWritten:
    return FilesWritten(at=at(offset, partition), commit_id="c", table=table, files={f"f{offset}": records})


def complete(offset: int, next_offset: int, partition: int = 0) -> TaskComplete:
    return TaskComplete(at=at(offset, partition), commit_id="c", next_offsets={("orders", 0): next_offset})


EVENTS = (written(2, 10), complete(3, 10), written(8, 5), complete(9, 15))
CONTROL = ControlLog(
    topic="control", events=EVENTS, starts={0: 0}, ends={0: END}, is_whole=True, is_settled=True, unreadable=0
)
SOURCES = SinkSources(
    topic="orders",
    table_name="dw.orders",
    group="connect-lake",
    group_offsets={0: 15},
    coordinator=Coordinator(committed={0: 5}, is_live=False, log={0: (0, END)}),
    control=CONTROL,
    table=SinkCommit(offsets={0: 5}, files=frozenset({"f2"})),
)


def standing(sources: SinkSources) -> tuple[Mapping[int, int | None], int, int]:
    """Return the next offsets, and the records that are to come and that were passed over."""
    answer = sink_standing(sources)
    return answer.next_offsets, answer.to_come.records, answer.passed_over.records


def coordinator(committed: int | None, *, is_live: bool = False, start: int = 0) -> Coordinator:
    return Coordinator(committed={0: committed}, is_live=is_live, log={0: (start, END)})


def test_records_whose_event_is_behind_the_coordinator_are_still_to_come() -> None:
    assert standing(SOURCES) == ({0: 10}, 5, 0)


def test_records_whose_event_the_coordinator_has_passed_never_come() -> None:
    assert standing(replace(SOURCES, coordinator=coordinator(12))) == ({0: 15}, 0, 5)


def test_a_coordinator_without_an_offset_begins_at_the_end() -> None:
    assert standing(replace(SOURCES, coordinator=coordinator(None))) == ({0: 15}, 0, 5)


def test_where_a_live_coordinator_without_an_offset_began_is_not_known() -> None:
    assert standing(replace(SOURCES, coordinator=coordinator(None, is_live=True))) == ({0: 10}, 5, 0)


@pytest.mark.parametrize("committed", [3, END + 5], ids=["before the log", "behind the log"])
def test_an_offset_that_the_control_topic_does_not_have_is_none(committed: int) -> None:
    assert standing(replace(SOURCES, coordinator=coordinator(committed, start=4))) == ({0: 15}, 0, 5)


def test_events_below_the_summary_of_the_table_are_skipped_by_the_sink() -> None:
    table = SinkCommit(offsets={0: 12}, files=frozenset({"f2", "f8"}))
    assert standing(replace(SOURCES, table=table)) == ({0: 15}, 0, 0)


def test_a_file_that_the_sink_skips_and_the_table_lacks_was_passed_over() -> None:
    table = SinkCommit(offsets={0: 12}, files=frozenset({"f2"}))
    assert standing(replace(SOURCES, table=table)) == ({0: 15}, 0, 5)


def test_files_from_before_the_oldest_snapshot_are_not_held_to_be_lost() -> None:
    table = SinkCommit(offsets={0: 12}, files=frozenset(), since={0: 12})
    assert standing(replace(SOURCES, table=table)) == ({0: 15}, 0, 0)


def test_without_a_summary_every_event_that_the_coordinator_has_not_passed_comes() -> None:
    table = SinkCommit(files=frozenset({"f2", "f8"}))
    assert standing(replace(SOURCES, table=table, coordinator=coordinator(0))) == ({0: 0}, 0, 0)


def test_a_control_topic_that_lost_its_beginning_does_not_say_from_where_on_records_are_to_come() -> None:
    control = replace(CONTROL, events=EVENTS[2:], starts={0: 4}, is_whole=False)
    assert standing(replace(SOURCES, control=control)) == ({0: None}, 5, 0)


def test_an_open_transaction_in_the_control_topic_keeps_the_group_from_being_believed() -> None:
    control = replace(CONTROL, events=EVENTS[:2], is_settled=False)
    assert standing(replace(SOURCES, control=control)) == ({0: 10}, 0, 0)


def test_a_group_that_was_set_back_reads_again_from_there() -> None:
    assert standing(replace(SOURCES, group_offsets={0: 4})) == ({0: 4}, 5, 0)
    assert standing(replace(SOURCES, group_offsets={0: 4}, coordinator=coordinator(12))) == ({0: 4}, 0, 5)


def test_a_group_that_was_set_to_the_end_by_hand_is_believed_when_nothing_is_to_come() -> None:
    assert standing(replace(SOURCES, group_offsets={0: 99}, coordinator=coordinator(12))) == ({0: 99}, 0, 5)
    assert standing(replace(SOURCES, group_offsets={0: 99})) == ({0: 10}, 5, 0)


def test_a_group_that_has_committed_nothing_says_nothing() -> None:
    assert standing(replace(SOURCES, group_offsets={0: None})) == ({0: None}, 5, 0)


def test_an_event_that_cannot_be_read_may_say_anything() -> None:
    assert standing(replace(SOURCES, control=replace(CONTROL, unreadable=1))) == ({0: None}, 5, 0)


def test_files_of_other_tables_and_records_of_other_topics_are_not_counted() -> None:
    others = (written(8, 7, "dw.other"), replace(complete(9, 15), next_offsets={("other", 0): 15}))
    control = replace(CONTROL, events=(*EVENTS[:2], *others))
    assert standing(replace(SOURCES, control=control)) == ({0: 15}, 0, 0)


def test_of_a_partition_that_moved_from_task_to_task_the_least_is_right() -> None:
    events = (complete(3, 10), complete(2, 12, partition=1), written(8, 3, partition=1), complete(9, 15, partition=1))
    control = replace(CONTROL, events=events, starts={0: 0, 1: 0}, ends={0: END, 1: END})
    moved = replace(
        SOURCES,
        control=control,
        coordinator=Coordinator(committed={0: 5, 1: 5}, is_live=False, log={0: (0, END), 1: (0, END)}),
        table=SinkCommit(offsets={0: 5, 1: 5}),
    )
    assert standing(moved) == ({0: 10}, 3, 0)
