"""Check that keys of coordinates are known where nothing else of a record is wanted, whatever its format."""

import json
from typing import Any

import pytest

from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.model.points import POSITION, SEQUENCE, KeyType
from tests.unit.compute.decode.test_coordinates import batch

pytestmark = pytest.mark.unit

ROW = {"schema": {"type": "struct", "fields": [{"field": "id", "type": "string"}]}, "payload": {"id": "O1"}}
EVENT = {"before": None, "after": {"id": "O1"}, "op": "c"}


@pytest.mark.parametrize(("made", "value"), [(ConnectFormat(), ROW), (ChangeEventFormat(), EVENT)], ids=str)
@pytest.mark.parametrize(("key", "keys"), [(POSITION, ["5", "6", "7"]), (SEQUENCE, ["2", "3", "4"])])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_record_has_its_key(made: Any, value: Any, key: tuple[str, ...], keys: list[str], count: int) -> None:
    shape = ValueShape(key=key, compare={}, key_layout=(KeyType.BIGINT,) * len(key), format=made)
    whole = batch([json.dumps(value).encode()] * count, [(7, 0, at) for at in (2, 3, 4)[:count]])
    decoded = decode_values(whole, shape)
    assert [json.loads(text)[-1] for text in decoded["key"]] == keys[:count]
    assert decoded["is_tombstone"].to_list() == [False] * count
    assert decoded["excluded_by"].to_list() == [[]] * count
