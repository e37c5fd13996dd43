"""Check the sums of a topic's pieces, and the manifest and incidents that are made of them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from makewhole.kafka.log.account import OffsetSpan
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.model.errors import CorruptionError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TopicPoint
from makewhole.model.window import Accounting, PartitionRange, Window
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.accounts import (
    PartitionAccount,
    log_incidents,
    log_manifest,
    merge_spans,
    partition_accounts,
)
from makewhole_spark.snapshot.compacted_keys import COMPARED_KEYS
from makewhole_spark.snapshot.read_piece import PieceRead

pytestmark = pytest.mark.unit

POINT = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",))
MOMENT = datetime(2013, 1, 2, tzinfo=UTC)


@dataclass
class Files:
    """A storage in memory."""

    written: dict[str, bytes] = field(default_factory=dict)

    def write_bytes(self, path: str, content: bytes) -> str:
        self.written[path] = content
        return path

    def read_bytes(self, path: str) -> bytes:
        return self.written[path]


def part(lo: int, hi: int, *epochs: tuple[int, int], **more: Any) -> PartitionRange:
    values = {"topic": "orders", "topic_id": "id1", "partition": 0, "lo": lo, "hi": hi, **more}
    return PartitionRange(**values, leader_epochs=epochs)


def context(*parts: PartitionRange, number: int = 1, storage: Files | None = None) -> WindowContext:
    window = Window(
        pipeline="demo",
        number=number,
        revision=1,
        start=None,
        end=MOMENT,
        opened_at=MOMENT,
        ranges={"orders": parts},
    )
    return cast(WindowContext, SimpleNamespace(window=window, storage=storage or Files()))


def read(data: int, **numbers: Any) -> PieceRead:
    """Return a piece with so many data records and these spans gone."""
    expired: tuple[OffsetSpan, ...] = numbers.get("expired", ())
    gone = sum(end - start for start, end in expired)
    values = {
        "files": (),
        "rows": data,
        "partition": 0,
        "accounting": Accounting(span=data + gone, data=data, expired=gone),
    }
    return PieceRead(**{**values, **numbers})


def account(whole: PartitionRange, *reads: PieceRead, now_id: str = "id1") -> PartitionAccount:
    (partition,) = partition_accounts(context(whole), POINT, reads, now_id)
    return partition


# Every offset


def test_pieces_of_a_range_add_up_to_its_span() -> None:
    partition = account(part(0, 20), read(8, expired=((0, 2),)), read(10))

    assert partition.accounting == Accounting(span=20, data=18, expired=2)
    assert (partition.expired, partition.truncated, partition.read_until) == ([(0, 2)], [], 20)


@pytest.mark.parametrize(
    "reads",
    [
        [read(19)],
        [read(10), read(11)],
        [],
        [read(20, accounting=Accounting(span=20, data=19))],
        [read(20, accounting=Accounting(span=20, data=15, expired=5))],
        [read(20, partition=1)],
    ],
    ids=["short", "repeated", "nothing", "not accounted for", "expired without a place", "of another partition"],
)
def test_a_range_with_unaccounted_offsets_is_refused(reads: list[PieceRead]) -> None:
    with pytest.raises(CorruptionError, match=r"orders/0 has 20 offsets in \[0, 20\), .* nothing was kept\. Run the"):
        account(part(0, 20), *reads)


def test_a_range_of_a_recreated_topic_is_expired_as_a_whole() -> None:
    partition = account(part(5, 20), now_id="id2")

    assert (partition.accounting, partition.read_until) == (Accounting(span=15, expired=15), 5)


def test_adjacent_spans_are_merged() -> None:
    assert merge_spans([(5, 7), (0, 2), (2, 5), (9, 10)]) == [(0, 7), (9, 10)]


def test_reading_ended_where_the_end_of_the_range_was_truncated() -> None:
    cut = ((6, 10),)
    tail = read(0, expired=((10, 20),), truncated=((10, 20),))

    assert account(part(0, 20), read(6, expired=cut, truncated=cut), tail).read_until == 6
    # The later piece was read before the cut: what it has was seen, and is reported to the next window as truncated.
    assert account(part(0, 20), read(6, expired=cut, truncated=cut), read(10)).read_until == 20


def test_the_manifest_says_what_every_offset_of_every_partition_was() -> None:
    parts = (part(0, 20), part(3, 5, partition=1, lineage=2))
    scene = context(*parts)
    reads = [
        read(16, expired=((16, 20),), truncated=((16, 20),), leader_epochs=((0, 0, 16),)),
        read(2, partition=1),
    ]

    manifest = log_manifest(scene, POINT, partition_accounts(scene, POINT, reads, "id1"), {})

    assert manifest["accounting"] == Accounting(span=22, data=18, expired=4).to_json_dict()
    assert "erasures" not in manifest["accounting"]
    assert manifest["accounting_by_partition"] == {
        "0": Accounting(span=20, data=16, expired=4).to_json_dict(),
        "1": Accounting(span=2, data=2).to_json_dict(),
    }
    assert manifest["read_until"] == {"0": 16}
    assert (manifest["ranges"][1]["lo"], manifest["ranges"][1]["lineage"]) == (3, 2)
    assert manifest["leader_epochs"] == {"0": [[0, 0, 16]], "1": []}
    assert manifest["sequences"] == "demo/window=1/revision=1/orders/sequences.json"


@pytest.mark.parametrize(
    ("compares", "before", "expected"),
    [
        (True, {COMPARED_KEYS: {"same": 7, "others": 0}}, {"same": 7, "others": 0}),
        (True, {}, {"same": 0, "others": 0}),
        (False, {COMPARED_KEYS: {"same": 7, "others": 0}}, None),
    ],
    ids=["as before", "nothing before", "not compacted"],
)
def test_a_window_in_which_a_compacted_topic_was_idle_still_compares_keys(
    compares: bool, before: dict[str, Any], expected: dict[str, int] | None
) -> None:
    scene = context(part(20, 20))
    accounts = partition_accounts(scene, POINT, [], "id1")
    assert log_manifest(scene, POINT, accounts, before, compares_keys=compares).get(COMPARED_KEYS) == expected


# Sequences


def batch(base_offset: int, sequence: int) -> Any:
    return SimpleNamespace(
        base_offset=base_offset,
        end_offset=base_offset + 10,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        record_count=10,
        first_timestamp=0,
        max_timestamp=0,
    )


def audited(*batches: Any) -> SequenceAudit:
    audit = SequenceAudit(starts_at_zero=batches[0].base_offset == 0)
    for observed in batches:
        audit.observe(observed)
    return audit


def gaps(storage: Files, path: str) -> int:
    stored = json.loads(storage.written[path])["partitions"]["0"]["audit"]
    return SequenceAudit.from_json(stored).counts.gaps


@pytest.mark.parametrize(("later", "expected"), [({}, 1), ({"lineage": 1}, 0), ({"topic_id": "id2"}, 0)])
def test_sequences_go_on_from_the_window_before_while_the_log_does(later: dict[str, Any], expected: int) -> None:
    storage = Files()
    first = context(part(0, 10), storage=storage)
    reads = [read(10, sequences=audited(batch(0, 0)))]
    before = log_manifest(first, POINT, partition_accounts(first, POINT, reads, "id1"), {})
    second = context(part(10, 20, **later), number=2, storage=storage)
    reads = [read(10, sequences=audited(batch(10, 25)))]

    now_id = later.get("topic_id", "id1")
    manifest = log_manifest(second, POINT, partition_accounts(second, POINT, reads, now_id), before)

    assert gaps(storage, before["sequences"]) == 0
    assert gaps(storage, manifest["sequences"]) == expected


# Incidents


def found(partition: PartitionAccount, before: int | None = None) -> list[tuple[str, int | None, int | None]]:
    epochs_before = {} if before is None else {0: before}
    return [(item.kind.value, item.lo, item.hi) for item in log_incidents(POINT, [partition], epochs_before)]


def test_each_expired_and_each_truncated_span_is_an_incident() -> None:
    cut = ((15, 20),)
    partition = account(
        part(0, 20, (3, 20), lineage=2), read(8, expired=((0, 2),)), read(5, expired=cut, truncated=cut)
    )

    expired, truncated = log_incidents(POINT, [partition], {})

    assert (expired.kind, expired.lo, expired.hi, expired.detail) == (
        IncidentKind.EXPIRED,
        0,
        2,
        {"before_it_was_read": True},
    )
    assert (truncated.kind, truncated.lo, truncated.hi) == (IncidentKind.TRUNCATED, 15, 20)
    assert truncated.detail == {"before_it_was_read": True, "lineage": 2, "seen_epochs": [[3, 20]]}


def test_a_range_that_is_gone_with_its_topic_is_one_incident() -> None:
    assert log_incidents(POINT, [account(part(5, 20), now_id="id2")], {0: 9}) == [
        Incident(
            kind=IncidentKind.TOPIC_RECREATED,
            point="orders",
            topic="orders",
            topic_id="id1",
            partition=0,
            lo=5,
            hi=20,
            detail={"before_it_was_read": True, "new_id": "id2"},
        )
    ]
    assert found(account(part(5, 5), now_id="id2")) == []


@pytest.mark.parametrize(
    ("epochs", "before", "expected"),
    [
        ([(0, 20)], None, []),
        ([(0, 20)], 0, []),
        ([(4, 20)], 3, [("leader_changed", 0, 20)]),
        ([(0, 12), (1, 20)], 0, [("leader_changed", 12, 20)]),
        ([(0, 12), (1, 20)], None, [("leader_changed", 12, 20)]),
        ([(0, 12), (1, 20)], 1, [("leader_changed", 0, 20)]),
        ([(0, 20), (1, 20)], 0, [("leader_changed", 20, 20)]),
    ],
)
def test_the_incident_of_a_leader_change_begins_at_the_first_offset_of_another_epoch(
    epochs: list[tuple[int, int]], before: int | None, expected: list[tuple[str, int, int]]
) -> None:
    assert found(account(part(0, 20, *epochs), read(20)), before) == expected


def test_without_frozen_epochs_those_of_the_batches_count() -> None:
    partition = account(part(0, 20), read(20, leader_epochs=((0, 0, 12), (1, 12, 20))))

    (changed,) = log_incidents(POINT, [partition], {})

    assert (changed.lo, changed.hi, changed.detail) == (12, 20, {"epochs": [[0, 12], [1, 20]], "before": None})
    assert found(account(part(0, 0), *[])) == []
