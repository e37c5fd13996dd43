"""Test where a consumer group is said to stand, and when that is an incident."""

from collections.abc import Mapping
from typing import Any

import pytest

from makewhole.kafka.group_offsets import CutOff, GroupOffsets, OffsetOutOfRange
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.consumer_groups import (
    GroupStanding,
    Unreached,
    group_incidents,
    standing_of,
    with_doubt_where_cut_off,
    with_nothing_between,
)

pytestmark = pytest.mark.unit

POINT = TopicPoint(name="orders", connection="kafka", topic="o", key=("$.id",))
RANGES = tuple(PartitionRange(topic="o", topic_id="id1", partition=at, lo=0, hi=100) for at in (0, 1))


def before(committed: Mapping[int, int | None], waiting: Mapping[int, int], **changed: Any) -> GroupStanding:
    return GroupStanding(**{"group": "g", "topic_id": "id1", "committed": committed, "waiting": waiting} | changed)


def standing(
    committed: Mapping[int, int | None],
    unreached: Mapping[int, int],
    last: GroupStanding | None = None,
    starts: Mapping[int, int] | None = None,
    out_of_range: Mapping[int, OffsetOutOfRange] | None = None,
) -> tuple[GroupStanding, list[Incident]]:
    """Return the standing and its incidents; `unreached` is partition → first offset, of three records."""
    by_partition = {partition: Unreached(records=3, first=first) for partition, first in unreached.items()}
    now = standing_of("g", committed, by_partition, RANGES, last, lambda: starts or {})
    return now, list(group_incidents(POINT, RANGES, now, last, by_partition, out_of_range or {}))


def kinds(incidents: list[Incident]) -> list[tuple[str, int | None, int | None]]:
    return [(incident.kind.value, incident.partition, incident.lo) for incident in incidents]


def test_a_group_that_has_read_everything_is_no_incident_however_long_it_stands() -> None:
    now, incidents = standing({0: 100, 1: None}, {}, before({0: 100, 1: None}, {}))
    assert (now.waiting, incidents) == ({}, [])


def test_a_partition_without_an_offset_where_records_wait_is_unknown() -> None:
    _, incidents = standing({0: 100, 1: None}, {1: 40})
    assert kinds(incidents) == [("group_unknown", 1, 40)]
    assert (incidents[0].hi, incidents[0].detail) == (100, {"group": "g", "committed": None, "records": 3})


@pytest.mark.parametrize(
    ("committed", "where"), [(140, "behind the end of its log (100)"), (5, "before the beginning of its log (30)")]
)
def test_an_offset_that_the_log_does_not_have_says_nothing(committed: int, where: str) -> None:
    beyond = {1: OffsetOutOfRange(committed=committed, start=30, end=100)}
    now, incidents = standing({0: 100, 1: None}, {1: 40}, before({0: 100, 1: committed}, {}), out_of_range=beyond)
    assert kinds(incidents) == [("group_out_of_range", 1, 40)]
    assert incidents[0].detail == {"group": "g", "committed": committed, "records": 3, "log": [30, 100]}
    assert incident_sentence(incidents[0]) == (
        f"group `g` has committed offset {committed} of o/1, which is {where}, and records wait from offset 40 on: how "
        "far it has read is not known"
    )
    assert "--to-offset OFFSET --topic o:1 --group g --execute" in settled_by(incidents[0])
    assert standing({0: 100, 1: None}, {}, out_of_range=beyond)[1] == [], "nothing waits there"
    assert now.committed[1] is None


@pytest.mark.parametrize(
    ("agreed", "where"),
    [
        (40, "behind where a change of leader cut off its log (40)"),
        (None, "behind where a change of leader cut off its log (where is not known)"),
    ],
)
def test_an_offset_of_records_that_were_cut_off_is_not_one_of_the_log(agreed: int | None, where: str) -> None:
    cut_off = CutOff(leader_epoch=3, agreed=agreed)
    beyond = {1: OffsetOutOfRange(committed=90, start=30, end=100, cut_off=cut_off)}
    _, incidents = standing({0: 100, 1: agreed}, {1: 40}, before({0: 100, 1: 90}, {}), out_of_range=beyond)
    assert kinds(incidents) == [("group_out_of_range", 1, 40)]
    assert incidents[0].detail["cut_off"] == {"leader_epoch": 3, "agreed": agreed}
    assert incident_sentence(incidents[0]) == (
        f"group `g` has committed offset 90 of o/1, which is {where}, and records wait from offset 40 on: how far it "
        "has read is not known"
    )
    assert "; one that does not goes on there, and never reads what waits before it. Find" in settled_by(incidents[0])


@pytest.mark.parametrize(("stood", "known"), [(90, 60), (80, 90), (None, 90)])
def test_an_offset_from_before_a_cut_is_known_up_to_there(stood: int | None, known: int) -> None:
    offsets = GroupOffsets(committed={0: 50, 1: 90}, out_of_range={})

    now = with_doubt_where_cut_off(offsets, before({0: 50, 1: stood}, {}), {0: 60, 1: 60})

    assert now == GroupOffsets(committed={0: 50, 1: known}, out_of_range={})
    assert with_doubt_where_cut_off(offsets, None, {1: 60}) == offsets


def test_a_group_that_is_behind_has_stalled_only_when_it_stood_there_before() -> None:
    assert standing({0: 50, 1: 100}, {0: 50})[1] == []
    assert standing({0: 50, 1: 100}, {0: 50}, before({0: 49, 1: 100}, {0: 49}))[1] == []
    assert kinds(standing({0: 50, 1: 100}, {0: 50}, before({0: 50, 1: 100}, {}))[1]) == [("consumer_stalled", 0, 50)]


def test_a_position_of_another_group_or_topic_is_no_comparison() -> None:
    for other in ({"group": "h"}, {"topic_id": "id0"}):
        now, incidents = standing({0: 50, 1: 100}, {0: 50}, before({0: 50, 1: 100}, {0: 10}, **other))
        assert (now.waiting, incidents) == ({0: 50}, [])


def test_what_waited_before_waits_on_as_long_as_the_log_has_it_and_the_group_does_not() -> None:
    last = before({0: 50, 1: None}, {0: 50, 1: 20})
    assert kinds(standing({0: 50, 1: None}, {}, last)[1]) == [("consumer_stalled", 0, 50), ("group_unknown", 1, 20)]
    assert standing({0: 51, 1: 21}, {}, last)[0].waiting == {}
    assert standing({0: 50, 1: None}, {}, last, {0: 51, 1: 21})[0].waiting == {}
    truncated = before({0: 50, 1: None}, {0: 100})
    assert standing({0: 50, 1: None}, {}, truncated)[0].waiting == {}


def test_the_log_is_asked_only_when_something_waited_before() -> None:
    def asked() -> Mapping[int, int]:
        raise AssertionError("the log was asked")

    standing_of("g", {0: 1, 1: 1}, {0: Unreached(records=1, first=1)}, RANGES, None, asked)


def test_a_standing_comes_back_from_json_as_it_was() -> None:
    now = before({0: 50, 1: None}, {0: 50})
    assert (
        GroupStanding.from_json_dict(
            {"group": "g", "topic_id": "id1", "committed": {"0": 50, "1": None}, "waiting": {"0": 50}}
        )
        == now
    )


def test_which_group_stands_where_and_what_to_do_is_reported() -> None:
    _, incidents = standing({0: 50, 1: None}, {0: 60, 1: 20}, before({0: 50}, {}))
    assert [incident_sentence(incident) for incident in incidents] == [
        "group `g` has stood at offset 50 of o/0 since the last window, and records wait from offset 60 on",
        "group `g` has committed no offset in o/1, where records wait from offset 20 on: it never consumed them, its "
        "offsets expired, or there is no such group",
    ]
    stalled, unknown = incidents
    assert settled_by(stalled).startswith("look at the consumer: the record at o/0 offset 50 may be what it cannot get")
    assert settled_by(unknown).startswith("look with `kafka-consumer-groups.sh --describe --group g`: correct")
    assert (stalled.kind, unknown.kind) == (IncidentKind.CONSUMER_STALLED, IncidentKind.GROUP_UNKNOWN)


@pytest.mark.parametrize(
    ("committed", "start", "last", "waiting", "is_read"),
    [
        (23, 24, 23, {}, True),  # a marker lay between
        (23, 24, 20, {}, True),
        (23, 24, None, {}, False),  # nothing is known of where it stood
        (23, 24, 23, {1: 23}, False),  # a record waited
        (23, 26, 23, {}, False),  # further than the window before has read
        (19, 24, 23, {}, False),  # set back since
        (140, 24, 23, {}, False),  # beyond the end
    ],
)
def test_an_offset_before_the_log_is_one_of_it_where_nothing_lay_between(
    committed: int, start: int, last: int | None, waiting: Mapping[int, int], is_read: bool
) -> None:
    beyond = {1: OffsetOutOfRange(committed=committed, start=start, end=100)}
    ranges = [PartitionRange(topic="o", topic_id="id1", partition=1, lo=24, hi=100)]
    offsets = GroupOffsets(committed={0: 3, 1: None}, out_of_range=beyond)

    now = with_nothing_between(offsets, before({1: last}, waiting), ranges)

    assert now == (GroupOffsets(committed={0: 3, 1: committed}, out_of_range={}) if is_read else offsets)
    assert with_nothing_between(offsets, None, ranges) == offsets
