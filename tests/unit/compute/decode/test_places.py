"""Check that columns are read from the places that a point maps them to, the same by every decoder."""

import json
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.json_lines import UnusualBatch
from makewhole.compute.decode.read_record import ReadRecord
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.same_layout import decode_same_layout
from makewhole.compute.row_filter import typed_term
from makewhole.model.places.record_paths import written_path
from tests.unit.compute.decode.arrow_alone import decode_with_arrow
from tests.unit.compute.decode.avro.written import HEADERS
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

SHAPE = ValueShape(
    key=("$.order.id",),
    compare={"amount": "decimal(10,2)", "at": "timestamp", "note": "string", "again": "decimal(10,2)"},
    places={"amount": "$.order.total.net", "at": "$.order.at", "again": "$.order.total.net"},
    version="$.order.v",
)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.sampled_from([0.5, "1.25", "", "x", "2013-01-01T05:00:00Z", [], {}, [1], {"net": 1}]),
)
ORDERS = st.one_of(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["a", 7]), "total": st.fixed_dictionaries({"net": st.integers(0, 9)}), "v": st.just(1)}
    ),
    st.fixed_dictionaries(
        {"id": LEAVES},
        optional={"total": LEAVES | st.fixed_dictionaries({}, optional={"net": LEAVES}), "at": LEAVES, "v": LEAVES},
    ),
    LEAVES,
)
DOCUMENTS = st.fixed_dictionaries({"order": ORDERS}, optional={"note": LEAVES, "total": LEAVES, "amount": LEAVES})


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
@example([{"order": {"id": "a", "total": None}}, {"order": {"id": "b", "total": 5}}, {"order": None}])
def test_the_three_decoders_agree_on_nested_places(documents: list[Any]) -> None:
    values: list[bytes | None] = [json.dumps(document).encode() for document in documents]
    alone = [record_values._decode_one_by_one(batch([value]), SHAPE).row(0) for value in values]

    assert decode_values(batch(values), SHAPE).rows() == alone
    parts, left = decode_same_layout(pa.array(values, pa.binary()), record_values._wanted(SHAPE))
    by_layout = {row: values for rows, frame in parts for row, values in zip(rows.tolist(), frame.rows(), strict=True)}
    assert sorted([*by_layout, *left.tolist()]) == list(range(len(values)))
    for row, (_, *columns) in by_layout.items():
        assert tuple(columns[:4]) == alone[row][2:6]
    try:
        decoded = decode_with_arrow(batch(values), SHAPE)
    except (UnusualBatch, pa.ArrowInvalid):
        return
    assert decoded.rows() == alone


def test_records_with_nested_places_are_decoded_by_layout_and_with_arrow() -> None:
    """No record goes one by one, so that a nested place costs what a field at the top does."""
    values: list[bytes | None] = [
        b'{"order":{"id":"k%d","total":{"net":%d.50},"at":"2013-01-01T05:00:00Z","v":%d},"note":"n","amount":1}'
        % (n, n, n)
        for n in range(300)
    ]

    with mock.patch.object(json_values, "_read_parts") as read_parts:
        decoded = decode_values(batch(values), SHAPE)

    assert not read_parts.called
    assert decoded.row(7)[:6] == ("k7", None, "7.50", "1357016400000000", "n", "7.50")
    assert decode_with_arrow(batch(values), SHAPE).equals(decoded)


def test_a_filter_is_asked_of_the_place_of_its_column() -> None:
    shape = ValueShape(
        key=("$.id",), compare={}, filters={"a→b": (typed_term("state", "open"),)}, places={"state": "$.order.state"}
    )
    values: list[bytes | None] = [b'{"id":"1","order":{"state":"open"}}', b'{"id":"2","state":"open"}']

    assert decode_values(batch(values), shape)["excluded_by"].to_list() == [[], ["a→b"]]


def test_columns_stand_in_headers_and_in_the_record_key() -> None:
    shape = ValueShape(
        key=("$.id",),
        compare={"tenant": "string", "number": "int"},
        places={"tenant": "header:tenant", "number": "kafka.key"},
    )
    tenant = {"key": "tenant", "value": b"t1"}
    headers: list[list[dict[str, Any]]] = [
        [tenant],
        [],
        [tenant, tenant],
        [{"key": "tenant", "value": b"\xff"}],
        [{"key": "tenant", "value": None}],
    ]

    decoded = decode_values(batch([b'{"id":"k"}'] * 5, [b"5", None, b"5", b"5", b"5"], headers), shape)

    assert shape.needs_record_key
    assert decoded.select("problem", "c:tenant", "c:number").rows() == [
        (None, "t1", "5"),
        (None, None, None),
        ("header tenant is doubled", None, None),
        ("header tenant is not valid UTF-8", None, None),
        (None, None, "5"),
    ]


@pytest.mark.parametrize(
    ("places", "value", "problem"),
    [
        ({"note": "$.payload.note"}, {"schema": {}, "payload": {"id": 1, "note": "x"}}, None),
        ({}, {"schema": {}, "payload": {"id": 1, "note": "x"}}, "envelope"),
        ({"note": "$.after.note"}, {"before": None, "after": {"note": "x"}, "source": {}, "op": "c"}, None),
    ],
)
def test_a_field_reached_through_an_envelope_is_no_problem(
    places: dict[str, str], value: dict[str, Any], problem: str | None
) -> None:
    shape = ValueShape(key=("kafka.key",), compare={"note": "string"}, places=places)

    decoded = decode_values(batch([json.dumps(value).encode()], [b"1"]), shape)

    assert (problem or "") in (decoded["problem"][0] or "")
    assert (decoded["key"][0], decoded["c:note"][0]) == ((None, None) if problem else ("1", "x"))


NAMES = ("of order", "a.b", "it's", 'say "x"', "größe", "back\\slash", "[0]", "$")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("as_ascii", [True, False])
def test_fields_of_any_name_are_read_alike_many_at_once_and_one_by_one(name: str, as_ascii: bool) -> None:
    rows = [{name: {"total net": number}, "id": f"O{number}", "of": {"order": -1}} for number in range(40)]
    values = [json.dumps(row, ensure_ascii=as_ascii).encode() for row in rows]
    in_any_order = [
        json.dumps(dict(reversed(row.items())), indent=number % 3).encode() for number, row in enumerate(rows)
    ]
    place = f"${written_path((name, 'total net'))}"
    shape = ValueShape(key=("$.id",), compare={"total": "int"}, places={"total": place})
    for content in (values, in_any_order):
        batch = pa.record_batch(
            {"value": pa.array(content, pa.binary()), "headers": pa.array([None] * len(rows), HEADERS)}
        )
        decoded = decode_values(batch, shape)
        assert decoded["c:total"].to_list() == [str(number) for number in range(40)]
        assert decoded.equals(record_values._decode_one_by_one(batch, shape))


@pytest.mark.parametrize(
    ("place", "has"),
    [
        ("$.a", True),
        ("$.a.b", True),
        ("$.c", False),
        ("$.d.e", True),
        ("$.d.f", False),
        ("$.d.e.g", False),
        ("header:h", True),
        ("header:i", False),
        ("kafka.key", True),
        ("kafka.key.id", True),
        ("kafka.key.no", False),
        ("kafka.offset", True),
    ],
)
def test_null_is_known_from_what_a_record_does_not_have(place: str, has: bool) -> None:
    record = ReadRecord(
        fields={"a": None, "d": {"e": 1}},
        record_key=b'{"id": null}',
        headers=[{"key": "h", "value": None}],
        read_key=lambda key, _: json.loads(key),
    )
    assert record.has(place) is has
