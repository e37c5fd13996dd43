"""The payload file and what binds it; what a broker would refuse; a key taken apart."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compensation.payloads import Payload, read_payloads, verify_payloads, write_payloads
from makewhole.kafka.replay import ReplayRecord, TopicRules
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.postgres.tables import key_components

pytestmark = pytest.mark.unit

BYTES = st.none() | st.binary(max_size=6)
PAYLOADS = st.builds(
    Payload,
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.text("ab", max_size=3), BYTES), max_size=3).map(tuple),
    timestamp_ms=st.none() | st.integers(-1, 2**45),
    partition=st.none() | st.integers(0, 9),
    extra=st.dictionaries(st.text("xy", max_size=2), st.integers(), max_size=2),
)


@settings(deadline=None)
@given(st.lists(PAYLOADS, min_size=1, max_size=7), st.integers(1, 4))
def test_a_payload_file_gives_back_what_was_written(payloads: list[Payload], chunk: int) -> None:
    uri = f"memory://plans/{uuid.uuid4().hex}.parquet"
    file_sha256 = write_payloads(uri, payloads, chunk)
    digests = [payload.sha256() for payload in payloads]
    file = verify_payloads(uri, file_sha256, digests)
    assert (file.rows, file.chunk_actions) == (len(payloads), chunk)
    last = len(payloads) - 1
    assert read_payloads(file, {0: digests[0], last: digests[last]}) == {0: payloads[0], last: payloads[last]}


@given(PAYLOADS, PAYLOADS)
def test_different_payloads_have_different_digests(one: Payload, other: Payload) -> None:
    assert (one.sha256() == other.sha256()) == (one == other)


def test_a_payload_that_is_not_the_frozen_one_is_never_given_out() -> None:
    uri = f"memory://plans/{uuid.uuid4().hex}.parquet"
    payload = Payload(value=b"frozen")
    file = verify_payloads(uri, write_payloads(uri, [payload], 1), [payload.sha256()])
    write_payloads(uri, [Payload(value=b"changed")], 1)
    with pytest.raises(CorruptionError, match="is not the one that the plan froze; nothing of it is written"):
        read_payloads(file, {0: payload.sha256()})


def test_the_same_payloads_are_the_same_file() -> None:
    payloads = [Payload(key=b"k", value=b"v", headers=(("h", None),), timestamp_ms=5)]
    uris = [f"memory://plans/{uuid.uuid4().hex}.parquet" for _ in range(2)]
    assert write_payloads(uris[0], payloads, 3) == write_payloads(uris[1], payloads, 3)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, None),
        ({"timestamp_ms": 3_600_000 + 1_000_000}, None),
        (
            {"timestamp_ms": 3_600_001 + 1_000_000},
            "unfit: its timestamp is further ahead than message.timestamp.after.max.ms allows",
        ),
        ({"timestamp_ms": 1}, "unfit: its timestamp is older than message.timestamp.before.max.ms allows"),
        ({"partition": 2}, "unfit: the topic has no partition 2 any more"),
        (
            {"value": b"x" * 9_000},
            "unfit: with its lineage headers the record exceeds max.message.bytes (10000)",
        ),
    ],
)
def test_what_the_broker_would_refuse_is_known_before(record: dict[str, object], reason: str | None) -> None:
    rules = TopicRules(
        partitions=frozenset({0, 1}),
        max_message_bytes=10_000,
        max_ahead_ms=3_600_000,
        max_behind_ms=900_000,
        is_create_time=True,
    )
    fields = {"key": b"k", "value": b"v", "headers": (), "timestamp_ms": 1_000_000, "partition": 1} | record
    assert rules.refusal(ReplayRecord(**fields), now_ms=1_000_000) == reason  # type: ignore[arg-type]


def test_a_key_of_several_columns_is_taken_apart() -> None:
    assert key_components('["2013","UA"]', ("year", "carrier")) == ("2013", "UA")
    assert key_components('["x"]', ("id",)) == ('["x"]',)
    with pytest.raises(RefusedError, match="a key does not have the 3 components"):
        key_components('["2013","UA"]', ("year", "carrier", "flight"))
