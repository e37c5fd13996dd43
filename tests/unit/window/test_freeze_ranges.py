"""The ranges of a new window start and end where the brokers' answers, made by hand, say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from makewhole.kafka.offsets import EpochEnd, LogEnd, TopicLog, TopicState
from makewhole.kafka.open_transactions import OpenTransaction
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import TransientError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window import incidents
from makewhole.window.incidents import transactions_at_window_end
from makewhole.window.opening import freeze_ranges as ranges_module
from makewhole.window.opening.freeze_ranges import CoveredRanges, Interval, freeze_ranges
from makewhole.window.opening.observe import ObservedTopic, require_same_leaders

pytestmark = pytest.mark.unit

POINT = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",))
MOMENT, DAY = datetime(2013, 1, 2, tzinfo=UTC), timedelta(days=1)


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


INTERVAL = Interval(start=None, end=MOMENT, now=MOMENT)


class Brokers:
    """A topic of one incarnation. `epochs`: where each leader epoch of a partition starts, the newest last."""

    connection = KafkaConnection(id="log", properties={})
    topic = "orders"

    def __init__(
        self,
        stable: Mapping[int, int],
        epochs: Mapping[int, Mapping[int, int]] | None = None,
        *,
        starts: Mapping[int, int] | None = None,
        high: Mapping[int, int] | None = None,
    ) -> None:
        self.ends = stable
        self.epochs = epochs or {partition: {0: 0} for partition in stable}
        self.first = starts or dict.fromkeys(stable, 0)
        self.high = high or stable
        self.requests = 0

    def describe(self) -> TopicState:
        return TopicState(topic_id="id1", partitions=tuple(self.ends))

    def now(self, topic_id: str = "id1") -> ObservedTopic:
        return ObservedTopic(
            state=TopicState(topic_id=topic_id, partitions=tuple(self.ends)),
            stable=self.stable_ends(),
        )

    def _log_ends(self, offsets: Mapping[int, int]) -> dict[int, LogEnd]:
        return {partition: LogEnd(offset, max(self.epochs[partition])) for partition, offset in offsets.items()}

    def starts(self) -> dict[int, LogEnd]:
        return self._log_ends(self.first)

    def stable_ends(self) -> dict[int, LogEnd]:
        return self._log_ends(self.ends)

    def high_watermarks(self) -> dict[int, LogEnd]:
        return self._log_ends(self.high)

    def ends_of_leader_epochs(self, epochs: Mapping[int, int]) -> dict[int, EpochEnd | None]:
        self.requests += 1
        return {partition: self._end_of_epoch(partition, epoch) for partition, epoch in epochs.items()}

    def _end_of_epoch(self, partition: int, epoch: int) -> EpochEnd | None:
        starts = sorted(self.epochs[partition].items())
        later = [offset for at, offset in starts if at > epoch]
        known = [at for at, _ in starts if at <= epoch]
        return EpochEnd(known[-1] if known else epoch, later[0] if later else self.ends[partition])


@pytest.fixture(autouse=True)
def nothing_is_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is later than the interval: windows end at the stable offset."""
    monkeypatch.setattr(
        ranges_module, "first_records", lambda _, within, **__: {part.partition: None for part in within}
    )


def part(lo: int, hi: int, *epochs: tuple[int, int], partition: int = 0, **more: Any) -> PartitionRange:
    values = {"topic": "orders", "topic_id": "id1", "partition": partition, "lo": lo, "hi": hi, **more}
    return PartitionRange(**values, leader_epochs=epochs)


def frozen_ranges(
    brokers: Brokers, covered: CoveredRanges, topic_id: str = "id1"
) -> tuple[list[tuple[int, int, int, int]], list[Incident]]:
    """Return (partition, lineage, lo, hi) of every range, and the incidents."""
    ranges, incidents_found = freeze_ranges(POINT, cast(TopicLog, brokers), brokers.now(topic_id), covered, INTERVAL)
    return [(frozen.partition, frozen.lineage, frozen.lo, frozen.hi) for frozen in ranges], incidents_found


def test_the_first_window_starts_at_the_log_start() -> None:
    assert frozen_ranges(Brokers({0: 90, 1: 20}), CoveredRanges()) == ([(0, 0, 0, 90), (1, 0, 0, 20)], [])


@pytest.mark.parametrize(
    ("first_record", "begins_at"),
    [(MOMENT - DAY, MOMENT - DAY), (MOMENT + timedelta(minutes=50), MOMENT), (None, MOMENT)],
    ids=["its time", "a clock that is ahead", "no record"],
)
def test_a_log_that_lost_its_beginning_says_from_when_on_it_has_all_records(
    monkeypatch: pytest.MonkeyPatch, first_record: datetime | None, begins_at: datetime
) -> None:
    monkeypatch.setattr(
        ranges_module, "first_record_stamps", lambda *_: {0: first_record and milliseconds(first_record)}
    )
    ranges, (gone,) = frozen_ranges(Brokers({0: 90, 1: 20}, starts={0: 40, 1: 0}), CoveredRanges())
    assert ranges == [(0, 0, 40, 90), (1, 0, 0, 20)]
    assert (gone.kind, gone.detail) == (
        IncidentKind.BEGINNING_GONE,
        {"starts": {"0": 40}, "begins_at": begins_at.isoformat()},
    )


@pytest.mark.parametrize("stamp", [1_750_000_000, -1, 1_750_000_000_000_000, milliseconds(MOMENT + DAY)])
def test_a_stamp_that_cannot_be_does_not_say_from_when_on_a_log_has_its_records(
    monkeypatch: pytest.MonkeyPatch, stamp: int
) -> None:
    monkeypatch.setattr(ranges_module, "first_record_stamps", lambda *_: {0: milliseconds(MOMENT - DAY), 1: stamp})
    _, (gone,) = frozen_ranges(Brokers({0: 90, 1: 20}, starts={0: 40, 1: 10}), CoveredRanges())
    assert gone.detail == {"starts": {"0": 40, "1": 10}, "begins_at": None, "stamps": {"1": stamp}}


def test_a_window_goes_on_where_the_last_one_ended_even_when_the_log_starts_later_now() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 30, (0, 30)), part(30, 50, (0, 50))]})

    assert frozen_ranges(Brokers({0: 90}), covered) == ([(0, 0, 50, 90)], [])
    assert frozen_ranges(Brokers({0: 90}, starts={0: 70}), covered) == ([(0, 0, 50, 90)], [])


def test_a_truncated_partition_goes_on_as_another_lineage_from_exactly_where_it_was_cut() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 200, (0, 200))], 1: [part(0, 10, (0, 10), partition=1)]})
    brokers = Brokers({0: 300, 1: 10}, {0: {0: 0, 1: 150}, 1: {0: 0}})

    ranges, (truncation,) = frozen_ranges(brokers, covered)

    assert ranges == [(0, 1, 150, 300), (1, 0, 10, 10)]
    assert (truncation.kind, truncation.partition, truncation.lo, truncation.hi, truncation.topic_id) == (
        IncidentKind.TRUNCATED,
        0,
        150,
        200,
        "id1",
    )
    assert truncation.detail == {"before_it_was_read": False, "lineage": 0, "seen_epochs": [[0, 200]]}


def test_a_second_truncation_is_placed_in_the_lineage_that_came_of_the_first() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 200, (0, 200)), part(150, 300, (1, 300), lineage=1)]})

    ranges, (truncation,) = frozen_ranges(Brokers({0: 400}, {0: {0: 0, 2: 120}}), covered)

    assert ranges == [(0, 2, 120, 400)]
    assert (truncation.lo, truncation.hi, truncation.detail["lineage"], truncation.detail["seen_epochs"]) == (
        120,
        300,
        1,
        [[0, 150], [1, 300]],
    )


def test_what_was_cut_off_before_anybody_read_it_begins_a_lineage_and_is_no_second_incident() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 200, (0, 200))]}, read_until={0: 150})

    assert frozen_ranges(Brokers({0: 300}, {0: {0: 0, 1: 150}}), covered) == ([(0, 1, 150, 300)], [])


def test_ranges_of_before_epochs_were_kept_are_taken_as_they_are() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 200)]})

    assert frozen_ranges(Brokers({0: 300}, {0: {0: 0, 1: 150}}), covered) == ([(0, 0, 200, 300)], [])


def test_epochs_of_a_range_are_kept_with_it() -> None:
    brokers = Brokers({0: 300}, {0: {0: 0, 2: 120, 3: 240, 5: 300}})
    covered = CoveredRanges(ranges={0: [part(0, 100, (0, 100))]})

    (frozen,), _ = freeze_ranges(POINT, cast(TopicLog, brokers), brokers.now(), covered, INTERVAL)

    assert frozen.leader_epochs == ((0, 120), (2, 240), (3, 300), (5, 300))


def test_a_topic_that_was_made_again_starts_at_its_first_offset_ever() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 200, (0, 200))], 1: [part(0, 10, (0, 10), partition=1)]})

    ranges, (remade,) = frozen_ranges(Brokers({0: 30}, starts={0: 5}), covered, topic_id="id2")

    assert ranges == [(0, 0, 0, 30)]
    assert (remade.kind, remade.partition, remade.topic_id) == (IncidentKind.TOPIC_RECREATED, None, "id2")
    assert remade.detail == {"before_it_was_read": False, "old_id": "id1", "old_ends": {"0": 200, "1": 10}}


def test_partitions_that_were_added_start_at_zero() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 50, (0, 50))]})

    ranges, (added,) = frozen_ranges(Brokers({0: 50, 1: 9}, starts={0: 0, 1: 4}), covered)

    assert ranges == [(0, 0, 50, 50), (1, 0, 0, 9)]
    assert (added.kind, added.partition, added.lo, added.hi) == (IncidentKind.PARTITIONS_ADDED, 1, 0, 9)


def test_a_description_that_lacks_a_partition_is_not_believed() -> None:
    covered = CoveredRanges(ranges={0: [part(0, 5, (0, 5))], 1: [part(0, 5, (0, 5), partition=1)]})

    with pytest.raises(TransientError, match="do not know partition 1 of orders, which a window has read"):
        frozen_ranges(Brokers({0: 50}), covered)


def test_a_leader_that_changed_meanwhile_is_asked_again_later() -> None:
    seen = Brokers({0: 50}).now()
    require_same_leaders(cast(TopicLog, Brokers({0: 60})), seen)

    with pytest.raises(TransientError, match="the leader of orders/0 changed while its offsets were being frozen"):
        require_same_leaders(cast(TopicLog, Brokers({0: 60}, {0: {0: 0, 1: 50}})), seen)
    with pytest.raises(TransientError, match="topic orders was made again while its offsets were being frozen"):
        require_same_leaders(cast(TopicLog, Brokers({0: 50})), Brokers({0: 50}).now("id0"))


# Transactions


def transaction(first_offset: int, partition: int = 0, *, is_hanging: bool = False) -> OpenTransaction:
    return OpenTransaction(
        partition=partition,
        first_offset=first_offset,
        producer_id=7,
        producer_epoch=1,
        last_timestamp_ms=5,
        coordinator_epoch=0,
        transactional_id=None if is_hanging else "loader",
        is_hanging=is_hanging,
    )


@pytest.mark.parametrize("is_hanging", [False, True])
def test_a_transaction_is_in_the_way_only_where_the_window_ends_at_its_first_record(
    monkeypatch: pytest.MonkeyPatch, is_hanging: bool
) -> None:
    open_now = (transaction(50, is_hanging=is_hanging), transaction(55), transaction(9, 1), transaction(30, 2))
    monkeypatch.setattr(incidents, "open_transactions", lambda *_: open_now)
    brokers = Brokers({0: 50, 1: 9, 2: 30}, high={0: 60, 1: 20, 2: 40})
    parts = [part(0, 50), part(0, 5, partition=1), part(0, 30, partition=2, topic_id="old")]

    (incident,) = transactions_at_window_end(POINT, cast(TopicLog, brokers), brokers.now(), parts)

    kind = IncidentKind.HANGING_TRANSACTION if is_hanging else IncidentKind.OPEN_TRANSACTION
    assert (incident.kind, incident.partition, incident.lo, incident.hi) == (kind, 0, 50, 60)
    assert (incident.detail["producer_id"], incident.detail["transactional_id"]) == (
        7,
        None if is_hanging else "loader",
    )


def test_where_the_stable_offset_does_not_lag_no_broker_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "open_transactions", lambda *_: pytest.fail("asked"))
    brokers = Brokers({0: 50})

    assert transactions_at_window_end(POINT, cast(TopicLog, brokers), brokers.now(), [part(0, 50)]) == []


def test_epochs_of_all_partitions_are_asked_for_at_once() -> None:
    """Twenty partitions, of which another window saw thirty epochs each; one lost the end of its log since."""
    epochs = {epoch: epoch * 10 for epoch in range(30)}
    partitions = range(20)
    seen = tuple((epoch, start + 10) for epoch, start in epochs.items())
    covered = CoveredRanges(ranges={at: [part(0, 300, *seen, partition=at)] for at in partitions})
    brokers = Brokers(
        dict.fromkeys(partitions, 400), {at: {**epochs, 30: 250 if at == 7 else 300} for at in partitions}
    )
    ranges, incidents_found = frozen_ranges(brokers, covered)
    assert ranges == [(at, int(at == 7), 250 if at == 7 else 300, 400) for at in partitions]
    assert [incident.kind for incident in incidents_found] == [IncidentKind.TRUNCATED]
    assert brokers.requests <= 30 + 6, "as many as one partition takes, and not twenty times as many"
