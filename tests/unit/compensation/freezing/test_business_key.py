"""The business key of a fetched record is checked: an offset can hold another record than before."""

import pytest

from makewhole.compensation.sources.sources import SourceRecord, business_key
from makewhole.model.points import TopicPoint

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("place", "value", "key"),
    [
        (("$.id",), b'{"id": 5}', "5"),
        (("$.no",), b'{"id": 5}', None),
        (("$.id",), None, None),
        (("kafka.key",), None, "k"),
        (("header:h",), b"{}", "x"),
        (("$.id", "kafka.key"), b'{"id": 5}', '["5","k"]'),
    ],
)
def test_a_records_key_is_read_as_snapshots_read_it(place: tuple[str, ...], value: bytes | None, key: str) -> None:
    record = SourceRecord(partition=0, offset=1, key=b"k", value=value, headers=(("h", b"x"),), timestamp_ms=None)

    assert business_key(TopicPoint(name="t", connection="c", topic="t", key=place), record) == key
