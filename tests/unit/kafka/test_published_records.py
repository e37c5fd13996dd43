"""Lay published rows out for the producer."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from makewhole.kafka.published_records import PublishedRecords
from makewhole.publishing.manifest import SCHEMA

pytestmark = pytest.mark.unit

MOMENT = datetime(2025, 3, 1, 0, 0, 0, 123_000, tzinfo=UTC)


def row(partition: int, offset: int, **changes: object) -> dict[str, object]:
    """Return a row of a published file."""
    record = {"timestamp": MOMENT, "record_key": b"k", "value": b"v", "headers": [{"key": "own", "value": b"h"}]}
    place = {"window": 7, "revision": 2, "change": "publish", "key": "k", "partition": partition, "offset": offset}
    return {**place, **record, **changes}


def messages(*rows: dict[str, object], partitions: int = 2) -> list[tuple[object, ...]]:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    return list(PublishedRecords(rows=table, partitions=partitions, name="p", chunk=5).messages())


def test_record_is_what_it_was_with_headers_that_say_where_it_is_from() -> None:
    headers = [
        ("own", b"h"),
        ("makewhole-published", b"publish"),
        ("makewhole-published-window", b"7/2"),
        ("makewhole-published-from", b"5:11"),
        ("makewhole-published-chunk", b"p/5"),
    ]
    assert messages(row(5, 11)) == [(b"v", b"k", headers, 1, 1_740_787_200_123)]


@pytest.mark.parametrize("milliseconds", range(1_740_787_200_000, 1_740_787_200_999, 37))
def test_time_of_a_record_is_kept_to_the_millisecond(milliseconds: int) -> None:
    stamp = pa.scalar(milliseconds, pa.timestamp("ms", tz="UTC"))
    table = pa.Table.from_pylist([row(0, 1)], schema=SCHEMA)
    table = table.set_column(6, "timestamp", pa.array([stamp.as_py()], SCHEMA.field("timestamp").type))
    [message] = PublishedRecords(rows=table, partitions=1, name="p", chunk=0).messages()
    assert message[4] == milliseconds


def test_first_millisecond_of_1970_is_not_taken_for_now() -> None:
    [message] = messages(row(0, 1, timestamp=datetime(1970, 1, 1, tzinfo=UTC)))
    assert message[4] == 1


def test_record_without_a_time_is_sent_with_that_of_now() -> None:
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)  # -1: none (Kafka's NO_TIMESTAMP)
    assert [message[4] for message in messages(row(0, 1, timestamp=None), row(0, 2, timestamp=before_1970))] == [0, 0]


def test_partitions_of_the_source_stay_together_where_the_topic_has_fewer() -> None:
    sent = [message[3] for message in messages(row(0, 1), row(1, 1), row(2, 1), row(3, 1), partitions=3)]
    assert sent == [0, 1, 2, 0]
