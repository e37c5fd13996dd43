"""Check when coordinates do not name one record for ever, and a window is refused."""

from typing import Any

import pytest

from makewhole.kafka.topics import Setting, SettingSource, TopicDescription
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.grouping import Grouping
from makewhole.model.points import POSITION, SEQUENCE, PointKind, TablePoint, TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.incidents import topic_recreated, truncated
from makewhole.window.opening import coordinates
from makewhole.window.opening.coordinates import require_lasting_coordinates

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
LAST = PartitionRange(topic="o", topic_id="id", partition=0, lo=0, hi=9)


def pipeline(key: tuple[str, ...], group: Grouping | None = None) -> Pipeline:
    topic = TopicPoint(name="orders", connection="log", topic="o", key=key)
    store = TablePoint(name="rows", kind=PointKind.STORE, connection="db", table="rows", key=("a", "b"))
    hop = Hop(source="orders", target="rows", remedies=REPORT, group=group)
    return Pipeline(name="p", points={"orders": topic, "rows": store}, hops=(hop,))


def require(
    monkeypatch: pytest.MonkeyPatch,
    key: tuple[str, ...],
    policy: str | None,
    *kinds: str,
    group: Grouping | None = None,
) -> None:
    settings = {} if policy is None else {"cleanup.policy": Setting(value=policy, source=SettingSource.TOPIC)}

    def describe(*_: Any) -> TopicDescription:
        return TopicDescription(name="o", topic_id="id", brokers=1, partitions=(), settings=settings)

    monkeypatch.setattr(coordinates, "describe_settings", describe)
    described = pipeline(key, group)
    point = described.topic("orders")
    known = {"truncated": truncated(point, LAST, (), 5, 9), "recreated": topic_recreated(point, "new", "id", {0: 9})}
    connections = {"log": KafkaConnection(id="log", properties={"bootstrap.servers": "b"})}
    require_lasting_coordinates(described, connections, [known[kind] for kind in kinds])


@pytest.mark.parametrize("kind", ["truncated", "recreated"])
def test_positions_that_other_records_have_now_are_refused(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    with pytest.raises(RefusedError, match=r"may be held to the ones that have their offsets now"):
        require(monkeypatch, POSITION, "delete", kind)
    require(monkeypatch, SEQUENCE, "delete", kind)
    require(monkeypatch, ("$.a", "$.b"), "delete", kind)


@pytest.mark.parametrize("key", [POSITION, SEQUENCE])
def test_coordinates_of_a_compacted_topic_are_refused(monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...]) -> None:
    for policy in ("compact", "compact,delete"):
        with pytest.raises(RefusedError, match=rf"o \(point orders\) is compacted \(its cleanup.policy is {policy}\)"):
            require(monkeypatch, key, policy)
        require(monkeypatch, ("$.a", "$.b"), policy)
    require(monkeypatch, key, "delete")
    require(monkeypatch, key, None)


def test_nothing_is_added_up_of_a_compacted_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Grouping(counts="lines")
    for policy in ("compact", "compact,delete"):
        with pytest.raises(RefusedError, match="adds up all records of a key, of which compaction leaves the last"):
            require(monkeypatch, ("$.a", "$.b"), policy, group=group)
    require(monkeypatch, ("$.a", "$.b"), "delete", group=group)
