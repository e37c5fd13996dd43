"""Check which filters of pieces of a topic's tail still describe its log."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from makewhole.compute.decode.json_values import JsonFormat
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.frames import HASHES
from makewhole.compute.indexed_keys.filters import build_filter
from makewhole.kafka.offsets import EpochEnd, TopicLog
from makewhole.lake.storage import Storage
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.tails.tail_filters import (
    TailFilters,
    may_hold,
    same_and_compacted,
    whole_pieces,
    write_filter,
)

pytestmark = pytest.mark.unit

POINT = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",))


@dataclass
class Leader:
    """Knows where each of its epochs ended; counts how often it is asked."""

    ends: Mapping[int, int]
    asked: int = field(default=0)

    def end_of_leader_epoch(self, partition: int, epoch: int) -> EpochEnd | None:
        self.asked += 1
        known = [end for end in self.ends if end <= epoch]
        return EpochEnd(max(known), self.ends[max(known)]) if known else None


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(root=str(tmp_path))


def found(storage: Storage, leader: Leader, *, key: str = "$.id", topic_id: str = "A", start: int = 0) -> TailFilters:
    shape = SimpleNamespace(key=key, elements=None)
    context = SimpleNamespace(storage=storage, window=SimpleNamespace(pipeline="shop"), value_shape=lambda _: shape)
    return TailFilters.of(cast(WindowContext, context), POINT, topic_id, cast(TopicLog, leader), {0: start})


def part(lo: int, hi: int) -> PartitionRange:
    return PartitionRange(topic="orders", topic_id="A", partition=0, lo=lo, hi=hi)


def reader(epoch: int, lo: int, hi: int, **more: Any) -> Any:
    account = SimpleNamespace(leader_epochs=[SimpleNamespace(epoch=epoch)] if epoch >= 0 else [])
    return SimpleNamespace(
        **{
            "account": account,
            "range": part(lo, hi),
            "accounting": SimpleNamespace(compacted=4),
            "expired": [],
            "undecodable": [],
            **more,
        }
    )


def keys(*numbers: int) -> pl.DataFrame:
    return pl.DataFrame([(number << 40, number) for number in numbers], schema=HASHES, orient="row")


def put(storage: Storage, epoch: int, lo: int, hi: int, **more: Any) -> None:
    write_filter(storage, found(storage, Leader({})).folder, reader(epoch, lo, hi, **more), keys(1, 2), same=6)


@pytest.mark.parametrize(
    ("lo", "hi", "pieces"),
    [
        (0, 20, [(0, 10, True), (10, 20, True)]),
        (3, 25, [(3, 10, False), (10, 20, True), (20, 25, False)]),
        (13, 17, [(13, 17, False)]),
        (10, 10, []),
    ],
)
def test_a_range_is_split_where_any_other_one_is(lo: int, hi: int, pieces: list[tuple[int, int, bool]]) -> None:
    assert [(piece.lo, piece.hi, is_whole) for piece, is_whole in whole_pieces(part(lo, hi), 10)] == pieces


def test_filters_are_kept_apart_by_how_records_are_read_and_found_again_by_other_processes(storage: Storage) -> None:
    def folder(point: TopicPoint) -> str:
        shape = ValueShape(key=("$.id",), compare={}, format=JsonFormat())
        context = SimpleNamespace(storage=storage, window=SimpleNamespace(pipeline="shop"), value_shape=lambda _: shape)
        return TailFilters.of(cast(WindowContext, context), point, "A", cast(TopicLog, Leader({})), {}).folder

    assert folder(POINT) == folder(POINT)
    assert folder(POINT) != folder(replace(POINT, value="avro"))


def test_the_filter_of_a_piece_shows_which_keys_it_has_not(storage: Storage) -> None:
    put(storage, 3, 10, 20)

    path = found(storage, Leader({3: 50})).file_of(part(10, 20))

    assert path is not None
    assert same_and_compacted(path) == (6, 4)
    assert may_hold(storage, path, keys(7, 2))
    assert not may_hold(storage, path, keys(7, 8))
    assert not may_hold(storage, path, keys())


@pytest.mark.parametrize(
    ("ends", "is_known"),
    [
        ({3: 20}, True),
        ({3: 50, 4: 60}, True),
        ({3: 19, 4: 60}, False),  # its end was cut off, and other records follow
        ({2: 15, 4: 60}, False),  # nothing is left of the epoch
        ({4: 60}, False),
    ],
)
def test_a_log_that_was_written_over_is_read(storage: Storage, ends: Mapping[int, int], is_known: bool) -> None:
    put(storage, 3, 10, 20)

    assert (found(storage, Leader(ends)).file_of(part(10, 20)) is not None) is is_known


def test_a_leader_is_asked_once_for_each_of_its_epochs(storage: Storage) -> None:
    for lo in range(0, 50, 10):
        put(storage, 3 if lo < 30 else 4, lo, lo + 10)
    leader = Leader({3: 30, 4: 60})

    assert len(found(storage, leader).files) == 5
    assert leader.asked == 2


def test_filters_are_of_one_topic_and_of_one_way_to_read_its_keys(storage: Storage) -> None:
    put(storage, 3, 10, 20)
    leader = Leader({3: 50})

    assert not found(storage, leader, topic_id="B").files
    assert not found(storage, leader, key="kafka.key").files


def test_filters_of_what_is_in_windows_by_now_are_removed(storage: Storage) -> None:
    put(storage, 3, 10, 20)
    put(storage, 3, 20, 30)
    storage.write_bytes(f"{found(storage, Leader({})).folder}/another-owners", b"")

    left = found(storage, Leader({3: 50}), start=20)

    assert list(left.files) == [(0, 20, 30)]
    assert len(storage.names(left.folder)) == 2


@pytest.mark.parametrize("more", [{"expired": [object()]}, {"undecodable": [object()]}, {"epoch": -1}])
def test_a_piece_that_was_not_read_whole_is_not_remembered(storage: Storage, more: dict[str, Any]) -> None:
    put(storage, more.pop("epoch", 3), 10, 20, **more)

    assert not found(storage, Leader({3: 50})).files


def test_a_broken_filter_is_removed_and_shows_nothing(storage: Storage) -> None:
    content = build_filter(np.array([1], dtype=np.uint64), np.array([1], dtype=np.uint64))
    storage.write_bytes("broken.filter", content[:-1])

    assert may_hold(storage, "broken.filter", keys(5))
    assert storage.read_if_exists("broken.filter") is None
    assert may_hold(storage, "broken.filter", keys(5))
