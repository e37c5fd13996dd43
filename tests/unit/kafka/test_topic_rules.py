"""Read what a topic accepts from the settings that brokers of each version have."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from makewhole.kafka import replay
from makewhole.model.connection import KafkaConnection

pytestmark = pytest.mark.unit

NO_LIMIT, HOUR = 2**63 - 1, 3_600_000
AFTER, BEFORE = "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"
COMMON = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
}


class Admin:
    """An AdminClient of one topic with these settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def describe_configs(self, resources: list[Any]) -> Any:
        answer: Future[Any] = Future()
        answer.set_result({name: SimpleNamespace(value=value) for name, value in self._settings.items()})
        return {resources[0]: answer}


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        pytest.param({AFTER: str(HOUR), BEFORE: str(NO_LIMIT)}, (HOUR, NO_LIMIT), id="4.0"),
        pytest.param(
            {AFTER: str(HOUR), BEFORE: str(NO_LIMIT), DIFFERENCE: str(2 * HOUR)}, (HOUR, 2 * HOUR), id="3.6 to 3.9"
        ),
        pytest.param({DIFFERENCE: str(HOUR)}, (HOUR, HOUR), id="before 3.6"),
        pytest.param({}, (NO_LIMIT, NO_LIMIT), id="none"),
    ],
)
def test_limits_of_timestamps_are_those_of_the_brokers_version(
    settings: dict[str, str], limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_admin", lambda _: Admin(COMMON | settings))

    rules = replay.topic_rules(KafkaConnection(id="k", properties={}), "t")

    assert (rules.max_ahead_ms, rules.max_behind_ms) == limits


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"retention.ms": "-1"}, None),
        ({"cleanup.policy": "compact"}, None),
        ({"cleanup.policy": "compact,delete"}, 604_800_000),
    ],
)
def test_a_topic_deletes_by_time_where_its_policy_says_so(
    settings: dict[str, str], retention_ms: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_admin", lambda _: Admin(COMMON | settings))

    assert replay.topic_rules(KafkaConnection(id="k", properties={}), "t").retention_ms == retention_ms
