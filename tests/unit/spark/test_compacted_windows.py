"""Check what the windows around one say of the records that compaction took from it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole.compute.decode.unread_keys import ComparedKeys
from makewhole.compute.judge.log_history import TimeSpan
from makewhole.journal.results import snapshot_manifests
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole_spark.reconcile.gather.compacted_tails import CompactedTail, compacted_with_tails
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.unread_records import compacted_records, compared_around

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
HOP = Hop(source="events", target="store", remedies=REPORT)
PIPELINE = Pipeline(
    name="p",
    points={
        "events": TopicPoint(name="events", connection="k", topic="events", key=("$.id",)),
        "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="store", key=("id",)),
    },
    hops=(HOP,),
)
BORN = datetime(2025, 3, 1, tzinfo=UTC)
BY_ID, MIXED = ComparedKeys(same=1000), ComparedKeys(same=1000, others=60)


def manifest(compared: ComparedKeys | None, compacted: int = 0) -> dict[str, Any]:
    entry = {} if compared is None else {"compared_keys": {"same": compared.same, "others": compared.others}}
    return {"events": {"accounting": {"compacted": compacted}, **entry}, "store": {}}


def window(number: int) -> Any:
    return SimpleNamespace(number=number, start=BORN + timedelta(days=number), end=BORN + timedelta(days=number + 1))


class Neighbours:
    """Windows 1 and 3 around window 2, and earlier revisions of this one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **manifests: Any) -> None:
        none = manifest(None)
        self.manifests: Mapping[str, Any] = manifests.get("own", manifest(BY_ID, 50))
        self.read: Mapping[int, Mapping[str, Any]] = {1: manifests.get("before", none), 3: manifests.get("after", none)}
        self.context = SimpleNamespace(pipeline=PIPELINE, window=window(2))
        self.recent: Sequence[Any] = [window(1)]
        self.later: Sequence[Any] = [window(3)]
        self.windows = SimpleNamespace(in_spans=lambda *_: [])
        self.journal = None
        replaced = [manifests["replaced"]["events"]] if "replaced" in manifests else []
        monkeypatch.setattr(snapshot_manifests, "snapshots_before", lambda *_: replaced)

    def read_manifests(self, of: object) -> None:
        """Do nothing: all were read."""

    def manifests_of(self, of: Any) -> Mapping[str, Any]:
        return self.read[of.number]

    def compacted(self, tail: ComparedKeys | None = None) -> tuple[bool, tuple[TimeSpan, ...]]:
        records = compacted_records(cast(NeighbouringWindows, self), "events", other="store", tail=tail)
        return records.is_any, records.spans


@pytest.mark.parametrize("place", ["before", "after", "replaced"])
def test_another_kafka_key_around_a_window_leaves_open_what_was_compacted_in_it(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The window has 1,000 records by the business key left; the 50 by the customer are gone."""
    assert Neighbours(monkeypatch, **{place: manifest(BY_ID)}).compacted() == (False, ())
    assert Neighbours(monkeypatch, **{place: manifest(MIXED)}).compacted() == (True, ())


def test_another_kafka_key_in_the_rest_of_the_log_does_too(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = Neighbours(monkeypatch)
    assert neighbours.compacted(BY_ID) == (False, ())
    assert neighbours.compacted(MIXED) == (True, ())


def test_what_was_compacted_before_the_window_is_open_for_the_times_of_that_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_before = (TimeSpan(start=window(1).start, end=window(1).end),)
    neighbours = Neighbours(monkeypatch, own=manifest(MIXED), before=manifest(BY_ID, 7))
    assert neighbours.compacted() == (False, of_before)


def test_another_kafka_key_says_nothing_where_no_window_was_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Neighbours(monkeypatch, own=manifest(MIXED)).compacted() == (False, ())


def test_all_windows_around_are_added_up_for_the_rest_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = Neighbours(monkeypatch, before=manifest(MIXED), replaced=manifest(BY_ID))
    assert compared_around(cast(NeighbouringWindows, neighbours), "events") == ComparedKeys(same=3000, others=60)
    assert compared_around(cast(NeighbouringWindows, neighbours), "store") is None
    not_compared = Neighbours(monkeypatch, own=manifest(None))
    assert compared_around(cast(NeighbouringWindows, not_compared), "events") is None


def test_a_compacted_tail_may_have_had_any_key_of_a_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours = cast(NeighbouringWindows, Neighbours(monkeypatch))
    tails = {"events": CompactedTail(partitions=frozenset({1}), compared=BY_ID)}
    assert compacted_with_tails(neighbours, HOP, tails)["events"].is_any
    none_there = {"events": CompactedTail(compared=BY_ID)}
    assert not compacted_with_tails(neighbours, HOP, none_there)["events"].is_any
