"""Test where the rest of a log begins: behind the windows, unless the log is not the one that they read."""

from collections.abc import Mapping
from typing import cast

import pytest

from makewhole.kafka.offsets import EpochEnd, TopicLog
from makewhole.model.window import PartitionRange
from makewhole_spark.reconcile.tails.log_tail import tail_starts

pytestmark = pytest.mark.integration


class Leader:
    """Knows where each of its epochs ended."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends = ends

    def end_of_leader_epoch(self, partition: int, epoch: int) -> EpochEnd | None:
        known = [end for end in self.ends if end <= epoch]
        return EpochEnd(max(known), self.ends[max(known)]) if known else None


def start(ends: Mapping[int, int], *, topic_id: str = "A") -> Mapping[int, int]:
    covered = PartitionRange(
        topic="orders", topic_id="A", partition=0, lo=50, hi=200, lineage=0, leader_epochs=((0, 120), (3, 200))
    )
    return tail_starts(cast("TopicLog", Leader(ends)), topic_id, [covered])


@pytest.mark.parametrize(
    ("ends", "lo"),
    [
        ({0: 120, 3: 260}, 200),  # the log went on
        ({0: 120, 3: 150, 4: 300}, 150),  # its end was cut off, and other records follow
        ({0: 100, 4: 300}, 100),  # cut off in an earlier epoch
        ({0: 30, 4: 300}, 30),  # cut off before the range
        ({4: 300}, 0),  # nothing is left of it
    ],
)
def test_the_tail_begins_where_the_log_is_another_one(ends: Mapping[int, int], lo: int) -> None:
    assert start(ends) == {0: lo}


def test_the_tail_of_a_topic_that_was_made_again_is_all_of_it() -> None:
    assert start({0: 120, 3: 260}, topic_id="B") == {}
