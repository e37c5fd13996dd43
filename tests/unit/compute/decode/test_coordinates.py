"""Check that keys of coordinates are the same whichever decoder takes the values of their records."""

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.coordinates import UNNUMBERED
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.unread_keys import unread_keys
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import POSITION, SEQUENCE, KeyType
from tests.unit.compute.decode.test_record_values import DOCUMENTS, VALUES, dumped
from tests.world.examples import examples

pytestmark = pytest.mark.unit

COMPARED = {"text": "string", "count": "bigint", "price": "decimal(12,2)", "at": "timestamp"}
NUMBERS = st.tuples(*(st.sampled_from([0, 1, 9, 2**31 - 1, 2**40, -1]) for _ in range(3)))


def batch(values: list[bytes | None], numbers: list[tuple[int, ...]]) -> pa.RecordBatch:
    """Make a batch of the log; each record has an offset of its own, the same numbers may repeat."""
    empty = pa.array([None] * len(values), pa.binary())
    columns: dict[str, Any] = {"key": empty, "value": pa.array(values, pa.binary()), "headers": empty}
    columns |= {"partition": pa.array([3] * len(values), pa.int32())}
    columns |= {"offset": pa.array(range(5, 5 + len(values)), pa.int64())}
    for at, name in enumerate(("producer_id", "producer_epoch", "sequence")):
        columns[name] = pa.array([of[at] for of in numbers], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def shape(key: tuple[str, ...], compare: dict[str, str], where: str | None = None) -> ValueShape:
    filters = {"a→b": filter_terms(where, {"count": "int"})}
    return ValueShape(key=key, compare=compare, key_layout=(KeyType.BIGINT,) * len(key), filters=filters)


@pytest.mark.parametrize("key", [POSITION, POSITION[::-1], SEQUENCE])
@pytest.mark.parametrize("compare", [COMPARED, {}], ids=["compared", "bare"])
@pytest.mark.parametrize("where", [None, "count > 0"])
def test_a_record_has_the_same_key_alone_and_among_others(
    key: tuple[str, ...], compare: dict[str, str], where: str | None
) -> None:
    by_place = shape(key, compare, where)

    @settings(max_examples=examples(60), deadline=None)
    @given(VALUES | st.lists(DOCUMENTS.map(dumped), min_size=2, max_size=6), st.data(), st.sampled_from([1, 128]))
    def check(values: list[bytes | None], data: st.DataObject, few: int) -> None:
        numbers = data.draw(st.lists(NUMBERS, min_size=len(values), max_size=len(values)))
        whole = batch(values, numbers)
        alone = [record_values._decode_one_by_one(whole.slice(at, 1), by_place).row(0) for at in range(len(values))]
        with mock.patch.object(json_values, "_FEWEST_HALVED", few):
            assert decode_values(whole, by_place).rows() == alone

    check()


def test_keys_of_coordinates_are_texts_of_their_numbers() -> None:
    whole = batch([b'{"count":1}'] * 4, [(7, 0, 2), (7, 0, 3), (-1, -1, -1), (8, 1, 0)])
    with mock.patch.object(record_values, "_decode_one_by_one") as one_by_one:
        by_place = decode_values(whole, shape(POSITION, COMPARED))
        by_sequence = decode_values(whole, shape(SEQUENCE, COMPARED))
    assert not one_by_one.called
    assert by_place["key"].to_list() == ['["3","5"]', '["3","6"]', '["3","7"]', '["3","8"]']
    assert by_sequence["key"].to_list() == ['["7","0","3","2"]', '["7","0","3","3"]', None, '["8","1","3","0"]']
    assert by_sequence["problem"].to_list() == [None, None, UNNUMBERED, None]


def test_a_value_that_cannot_be_read_leaves_its_key_known() -> None:
    whole = batch([b"no json", b'{"count":1}', None], [(7, 0, 2), (7, 0, 3), (-1, -1, -1)])
    for key, known in ((POSITION, ['["3","5"]', '["3","6"]', '["3","7"]']), (SEQUENCE, ['["7","0","3","2"]'])):
        by_place = shape(key, COMPARED)
        keys = decode_values(whole, by_place)["key"]
        assert keys.null_count() == 2
        assert unread_keys(whole, keys, by_place).to_list()[: len(known)] == known
    assert unread_keys(whole, keys, by_place)[2] == "\0"


def test_a_record_without_a_value_is_a_tombstone_also_where_only_its_place_is_read() -> None:
    by_place = shape(POSITION, {})
    decoded = decode_values(batch([b"{}", None], [(0, 0, 0), (0, 0, 1)]), by_place)
    assert decoded.select("key", "is_tombstone").rows() == [('["3","5"]', False), ('["3","6"]', True)]
