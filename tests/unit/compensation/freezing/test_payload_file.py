"""Payload files are checked by hash, records by the topic's rules, and keys are split into columns."""

import itertools
import json
import random
import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compensation.freezing.payload_file import verified_copy, write_payloads
from makewhole.kafka.replay_records import LineageHeaders, ReplayRecords, TopicRules
from makewhole.model.actions import Payload, PayloadExtra, ProduceExtra
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.items import RowsExtra
from makewhole.tables.keys import key_components
from makewhole.tables.rows import TableRow

pytestmark = pytest.mark.unit

BYTES = st.none() | st.binary(max_size=6)
PAYLOADS = st.builds(
    Payload,
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.text("ab", max_size=3), BYTES), max_size=3).map(tuple),
    timestamp_ms=st.none() | st.integers(-1, 2**45),
    partition=st.none() | st.integers(0, 9),
    extra=st.builds(ProduceExtra, origin=st.none() | st.text("xy"), partition_count=st.none() | st.integers(1, 9)),
)


def payloads_of(table: pa.Table) -> dict[int, Payload]:
    """Return the payloads of a chunk by action number."""
    index = table.schema.get_field_index("timestamp")
    return {
        row["seq"]: Payload(
            key=row["key"],
            value=row["value"],
            headers=tuple((header["key"], header["value"]) for header in row["headers"]),
            timestamp_ms=row["timestamp"],
            partition=row["partition"],
            extra=ProduceExtra(origin=row["origin"], **json.loads(row["extra"])),
        )
        for row in table.set_column(index, "timestamp", table.column("timestamp").cast(pa.int64())).to_pylist()
    }


@settings(deadline=None)
@given(st.lists(st.lists(PAYLOADS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_payload_file_gives_back_what_was_written(chunks: list[list[Payload]]) -> None:
    groups = _numbered(chunks)
    uri, sha256 = write_payloads(f"memory://plans/{uuid.uuid4().hex}", groups)
    with closing(verified_copy(uri, sha256)) as file:
        assert file.rows == sum(map(len, chunks))
        assert [payloads_of(file.chunk(n, _seqs(group))) for n, group in enumerate(groups)] == [
            dict(group) for group in groups
        ]


def test_a_file_that_changes_after_the_check_is_not_what_is_read() -> None:
    payload = Payload(value=b"frozen", extra=ProduceExtra())
    uri, sha256 = write_payloads(f"memory://plans/{uuid.uuid4().hex}", [[(0, payload)]])
    with closing(verified_copy(uri, sha256)) as file:
        fsspec.filesystem("memory").pipe_file(uri.removeprefix("memory:/"), b"changed")
        assert payloads_of(file.chunk(0, _seqs([(0, payload)]))) == {0: payload}
    with pytest.raises(CorruptionError, match="is not the one that the plan froze; nothing of it is written"):
        verified_copy(uri, sha256)


def test_payloads_of_other_actions_are_not_given_out() -> None:
    uri, sha256 = write_payloads(f"memory://plans/{uuid.uuid4().hex}", [[(0, Payload()), (2, Payload())]])
    with closing(verified_copy(uri, sha256)) as file:
        for group, seqs in ((0, [0, 1]), (0, [0]), (1, [0, 2])):
            with pytest.raises(CorruptionError, match="is not the one that the plan froze"):
                file.chunk(group, pa.chunked_array([pa.array(seqs, pa.int32())]))


def test_a_callback_is_called_after_every_block_of_a_large_file() -> None:
    incompressible = random.Random(5).randbytes(3 << 20)
    uri, sha256 = write_payloads(f"memory://plans/{uuid.uuid4().hex}", [[(0, Payload(value=incompressible))]])
    calls: list[int] = []
    verified_copy(uri, sha256, lambda: calls.append(1)).close()
    assert len(calls) == 4


def test_the_same_payloads_are_the_same_file() -> None:
    payloads = [(0, Payload(key=b"k", value=b"v", headers=(("h", None),), timestamp_ms=5))]
    uris, digests = zip(*(write_payloads(f"memory://plans/{n}", [payloads]) for n in range(2)), strict=True)
    assert len(set(digests)) == 1
    assert [uri.removeprefix("memory://plans/") for uri in uris] == [f"{n}-{digests[n][:12]}.parquet" for n in range(2)]


def _numbered(chunks: list[list[Payload]]) -> list[list[tuple[int, Payload]]]:
    numbers = itertools.count()
    return [[(next(numbers), payload) for payload in chunk] for chunk in chunks]


def _seqs(group: Sequence[tuple[int, Payload]]) -> Any:
    return pa.chunked_array([pa.array([seq for seq, _ in group], pa.int32())])


@pytest.mark.parametrize(
    ("record", "refusal"),
    [
        ({}, None),
        ({"timestamp_ms": 3_600_000 + 1_000_000}, None),
        (
            {"timestamp_ms": 3_600_001 + 1_000_000},
            Refusal(RefusalCode.UNFIT, "its timestamp is further ahead than message.timestamp.after.max.ms allows"),
        ),
        (
            {"timestamp_ms": 1},
            Refusal(RefusalCode.UNFIT, "its timestamp is older than message.timestamp.before.max.ms allows"),
        ),
        ({"partition": 2}, Refusal(RefusalCode.UNFIT, "the topic has no partition 2 any more")),
        ({"extra": ProduceExtra(origin="ledger", partition_count=2)}, None),
        (
            {"partition": 2, "extra": ProduceExtra(origin="ledger", partition_count=4)},
            Refusal(
                RefusalCode.STALE,
                "the topic has 2 partitions now and had 4 when the plan was frozen: the key may belong into another "
                "one; run the window again",
            ),
        ),
        ({"extra": RowsExtra(rows=(TableRow(table_oid=1, ctid="", text='{"partition_count": 4}'),))}, None),
        (
            {"value": b"x" * 9_000},
            Refusal(RefusalCode.UNFIT, "with its lineage headers the record exceeds max.message.bytes (10000)"),
        ),
    ],
)
def test_what_the_broker_would_refuse_is_known_before(record: dict[str, object], refusal: Refusal | None) -> None:
    rules = TopicRules(
        partitions=frozenset({0, 1}),
        max_message_bytes=10_000,
        max_ahead_ms=3_600_000,
        max_behind_ms=900_000,
        is_create_time=True,
    )
    fields = {
        "key": b"k",
        "value": b"v",
        "timestamp_ms": 1_000_000,
        "partition": 1,
        "extra": PayloadExtra(origin="t/1/5"),
    }
    frozen = [(7, Payload(value=b"v")), (8, Payload(**(fields | record)))]  # type: ignore[arg-type]
    assert _records(frozen).refusals(rules, now_ms=1_000_000) == ({} if refusal is None else {8: refusal})


def test_the_size_that_is_checked_is_that_of_the_record_with_all_its_headers() -> None:
    """The limit that just holds is the sum of every part, counted by hand."""
    frozen = [
        (
            12,
            Payload(
                key=b"key", value=b"value", headers=(("ä", b"xyz"), ("n", None)), extra=PayloadExtra(origin="o/1/2")
            ),
        )
    ]
    lineage = {"plan": b"p-1-f", "window": b"p/1", "seq": b"12", "origin": b"o/1/2", "chunk": b"3"}
    headers = [("ä".encode(), b"xyz"), (b"n", b""), *((f"makewhole-{n}".encode(), v) for n, v in lineage.items())]
    size = len(b"key") + len(b"value") + sum(len(name) + len(value) + 10 for name, value in headers) + 30 + 1024
    for limit, is_refused in ((size, False), (size - 1, True)):
        rules = TopicRules(
            partitions=frozenset({0}), max_message_bytes=limit, max_ahead_ms=0, max_behind_ms=0, is_create_time=False
        )
        assert bool(_records(frozen).refusals(rules, now_ms=0)) is is_refused


def test_records_carry_their_own_headers_first_and_then_their_lineage() -> None:
    frozen = [
        (4, Payload(key=b"a", headers=(("h", b"1"), ("h", None)), timestamp_ms=0, extra=PayloadExtra(origin="t/0/9"))),
        (6, Payload(value=b"v", timestamp_ms=-1, partition=2, extra=PayloadExtra(origin="ledger"))),
        (7, Payload(headers=(("x", b""),), extra=PayloadExtra(origin="t/0/11"))),
    ]
    plan, window, chunk = ("makewhole-plan", b"p-1-f"), ("makewhole-window", b"p/1"), ("makewhole-chunk", b"3")
    first = [("h", b"1"), ("h", None), plan, window, ("makewhole-seq", b"4"), ("makewhole-origin", b"t/0/9"), chunk]
    second = [plan, window, ("makewhole-seq", b"6"), ("makewhole-origin", b"ledger"), chunk]
    third = [("x", b""), plan, window, ("makewhole-seq", b"7"), ("makewhole-origin", b"t/0/11"), chunk]
    assert list(_records(frozen).messages()) == [
        (None, b"a", first, -1, 1),
        (b"v", None, second, 2, 0),
        (None, None, third, -1, 0),
    ]
    assert list(_records(frozen).without({6: "refused", 4: "refused"}).messages()) == [(None, None, third, -1, 0)]


def _records(frozen: Sequence[tuple[int, Payload]]) -> ReplayRecords:
    uri, sha256 = write_payloads(f"memory://plans/{uuid.uuid4().hex}", [frozen])
    with closing(verified_copy(uri, sha256)) as file:
        return ReplayRecords(file.chunk(0, _seqs(frozen)), LineageHeaders(plan="p-1-f", window="p/1", chunk=3))


def test_a_key_of_several_columns_is_taken_apart() -> None:
    assert key_components('["2013","UA"]', ("year", "carrier")) == ("2013", "UA")
    assert key_components('["x"]', ("id",)) == ('["x"]',)
    with pytest.raises(RefusedError, match="a key does not have the 3 components"):
        key_components('["2013","UA"]', ("year", "carrier", "flight"))
