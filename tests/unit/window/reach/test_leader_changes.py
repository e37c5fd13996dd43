"""Test when a change of leader may have taken acknowledged records along."""

import pytest

from makewhole.kafka.topics import Replicas, Setting, SettingSource, TopicDescription
from makewhole.model.incident import Incident, IncidentKind
from makewhole.window.reach.leader_changes import doubts_of_records, doubts_of_settings, with_earlier

pytestmark = pytest.mark.unit


def described(replicas: int = 3, **settings: str | None) -> TopicDescription:
    nodes = tuple(range(replicas))
    return TopicDescription(
        name="orders",
        topic_id="id1",
        brokers=3,
        partitions=(
            Replicas(partition=0, leader=0, leader_epoch=4, replicas=nodes, in_sync=nodes, offline=()),
            Replicas(partition=1, leader=0, leader_epoch=4, replicas=(0, 1, 2), in_sync=(0, 1, 2), offline=()),
        ),
        settings={
            name.replace("_", "."): Setting(value=value, source=SettingSource.TOPIC) for name, value in settings.items()
        },
    )


SAFE: dict[str, str | None] = {"min_insync_replicas": "2", "unclean_leader_election_enable": "false"}


@pytest.mark.parametrize(
    ("replicas", "changed", "doubts"),
    [
        (3, {}, {}),
        (3, {"min_insync_replicas": "1"}, {"few_copies": 1}),
        (1, {}, {"few_copies": 1}),
        (3, {"unclean_leader_election_enable": "true"}, {"unclean_election": 1}),
        (
            3,
            {"min_insync_replicas": "1", "unclean_leader_election_enable": "true"},
            {"few_copies": 1, "unclean_election": 1},
        ),
        (3, {"min_insync_replicas": None}, {"settings_unknown": 1}),
    ],
    ids=["safe", "one acknowledges", "one replica", "unclean", "both", "hidden"],
)
def test_settings_that_let_acknowledged_records_go(
    replicas: int, changed: dict[str, str | None], doubts: dict[str, int]
) -> None:
    assert doubts_of_settings(described(replicas, **(SAFE | changed))) == doubts


def test_settings_that_may_not_be_read_are_not_taken_for_safe() -> None:
    assert doubts_of_settings(described()) == {"settings_unknown": 1}


@pytest.mark.parametrize(
    ("unnumbered", "breaks", "doubts"),
    [(0, 0, {}), (7, 0, {"acks_unknown": 7}), (0, 2, {"numbers_missing": 2}), (0, -1, {})],
)
def test_records_that_leave_a_doubt(unnumbered: int, breaks: int, doubts: dict[str, int]) -> None:
    assert doubts_of_records(unnumbered=unnumbered, breaks=breaks) == doubts


def changed(partition: int, **doubts: int) -> Incident:
    return Incident(
        kind=IncidentKind.LEADER_CHANGED,
        point="orders",
        topic="orders",
        topic_id="id1",
        partition=partition,
        lo=2,
        hi=4,
        detail={"doubts": doubts},
    )


def test_a_topic_that_was_made_safe_since_was_not_safe_when_its_leader_changed() -> None:
    earlier = [changed(0, few_copies=1, unclean_election=1, acks_unknown=7, settings_unknown=1), changed(1)]

    assert with_earlier({"acks_unknown": 5}, changed(0), earlier) == {
        "few_copies": 1,
        "unclean_election": 1,
        "acks_unknown": 5,
    }
    assert with_earlier({}, changed(1), earlier) == {}
