"""Check that record values are decoded right, and the same by every decoder."""

import json
from decimal import Decimal
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.json_lines import UnusualBatch
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.row_filter import typed_term
from tests.unit.compute.decode.arrow_alone import decode_with_arrow
from tests.world.examples import examples

pytestmark = pytest.mark.unit

SHAPE = ValueShape(
    key=("$.id",),
    compare={
        "text": "string",
        "count": "int",
        "price": "decimal(12,2)",
        "fine": "decimal(30,9)",
        "flag": "boolean",
        "at": "timestamp",
        "day": "date",
    },
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(
    values: list[bytes | None],
    keys: list[bytes | None] | None = None,
    headers: list[list[dict[str, Any]]] | None = None,
) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys or [None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers or [[]] * len(values), HEADERS),
        }
    )


def key_and_problem(value: bytes | None, shape: ValueShape = SHAPE) -> tuple[str | None, str | None]:
    row = decode_values(batch([value]), shape).row(0)
    return row[0], row[1]


# Two ways, one answer

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.text(),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9).map(
        lambda number: Raw(str(number))
    ),
    st.sampled_from(["", "1", "1.0", "2013-01-01", "2013-01-01T05:00:00Z", "2013-01-01 05:00:00.1234567", "NaN"]),
    st.sampled_from(["1.0", "-0.0", "-0", "1e2", "1.10", "0.000000001", "1e999999999", "9007199254740993"]).map(
        lambda text: Raw(text)
    ),
)


class Raw(str):
    """A number by its JSON text."""


def dumped(document: dict[str, Any]) -> bytes:
    def text(value: Any) -> str:
        return str(value) if isinstance(value, Raw) else json.dumps(value, ensure_ascii=False)

    return ("{" + ",".join(f"{json.dumps(name)}:{text(value)}" for name, value in document.items()) + "}").encode()


TYPICAL: dict[str, st.SearchStrategy[Any]] = {
    "id": st.text(min_size=1).filter(lambda text: "\x00" not in text),
    "text": st.none() | st.text(),
    "count": st.none() | st.integers(-(2**63), 2**63 - 1),
    "price": st.none() | st.integers(-(10**6), 10**6).map(lambda n: Raw(f"{n}.{abs(n) % 100:02d}")),
    "fine": st.none() | st.sampled_from(["0.000000001", "-0.000000000", "12.5", "7"]).map(Raw),
    "flag": st.none() | st.booleans(),
    "at": st.none() | st.datetimes().map(lambda moment: moment.isoformat()),
    "day": st.none() | st.dates().map(lambda day: day.isoformat()),
}
DOCUMENTS = st.fixed_dictionaries(TYPICAL | {"other": SCALARS})
ODD_DOCUMENTS = st.dictionaries(st.sampled_from([*TYPICAL, "other"]), SCALARS)
HOSTILE: list[bytes | None] = [
    None,
    b"",
    b"{}",
    b"null",
    b"[]",
    b'"{}"',
    b"{",
    b'{"id":"cut',
    b'{"id":"a"}{"id":"b"}',
    b'{"id":"z"}\x00}',
    b'{"id":"a"}\n{"id":"b"}',
    b'{"id":"a",\r\n"text":"b"}',
    b' {"id":"a"} ',
    b'{"id":"a"} ',
    b'{"id":"a","id":"b"}',
    b'{"id":"a","count":1,"count":2}',
    b'{"id":null}',
    b'{"id":""}',
    b'{"id":1}',
    b'{"id":1.0}',
    b'{"id":"1"}',
    b'{"id":"1.0"}',
    b'{"id":true}',
    b'{"id":["a"]}',
    b'{"id":{"a":1}}',
    b'{"id":9223372036854775808}',
    b'{"id":-0}',
    b'{"id":1e999999999}',
    b'{"id":1e99999999999999999999}',
    b'{"id":NaN}',
    b'{"id":"a","price":NaN}',
    b'{"id":"a","other":NaN}',
    b'{"id":"a","other":[-Infinity]}',
    b'{"id":"a","other":"NaN Inf"}',
    b'{"id":"a","price":1e999999999,"count":1e999999999,"fine":-1e-999999999}',
    b'{"id":"a","price":1e99999999999999999999}',
    b'{"id":"a","other":' + b"9" * 5_000 + b"}",
    b'{"id":"a","count":' + b"9" * 5_000 + b"}",
    b'{"id":' + b"9" * 5_000 + b"}",
    b'{"id":"a\\u0000b"}',
    b'{"id":"a\x00b"}',
    b'{"id":"a\\ud800b"}',
    b'{"id":"a","text":"\\ud800"}',
    b'{"id":"a","text":"\\u0000"}',
    b'{"id":"\xff"}',
    b'{"id":"\xed\xa0\x80"}',
    b'\xef\xbb\xbf{"id":"a"}',
    '{"id":"a"}'.encode("utf-16"),
    '{"id":"e\u0301"}'.encode(),
    '{"id":"é"}'.encode(),
    '{"id":"\u202e\u200b<script>\x1b[31m =cmd()"}'.encode(),
    b'{"id":"a  "}',
    b'{"id":"' + b"k" * 3_000 + b'"}',
    b'{"id":"a","other":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"id":"a","other":' + b"[" * 150 + b"]" * 150 + b"}",
    b'{"id":"a","other":"' + b"[" * 1_000 + b'"}',
    b'{"id":"a","other":' + b"[" * 100_000,
    b'{"id":"a","at":5,"day":5,"flag":5,"count":"x","price":[0,[1],2]}',
    b'{"id":"a","flag":"TRUE","count":" 7 ","price":"1_0"}',
    b'{"id":"a","at":"0001-01-01T00:00:00+14:00","day":"9999-12-31"}',
    b'{"id":"a",}',
    b'{"id":"a" "text":1}',
    b"{'id':'a'}",
    b'{"id":01}',
]
VALUES = st.lists(
    st.one_of(DOCUMENTS.map(dumped), DOCUMENTS.map(dumped), ODD_DOCUMENTS.map(dumped), st.sampled_from(HOSTILE)),
    max_size=5,
)


@settings(max_examples=examples(300), deadline=None)
@given(VALUES, st.sampled_from([1, 2, 128]))
@example([b'{"id":"x"}{"id":"y"}', b'{"id":"z"}\x00}', b'{"id":"w"}'], 1)
@example([b'{"id":"x"}{"id":"y"}', b'{"id":"z"}\x00}', b'{"id":"w"}'], 128)
@example([b'{"id":"a"}', b'{"id":"b"}{"id":"c"}', b'{"id":"d"}\n'], 128)
@example([b'{"id":"}', b'{","b":1}', b"{}{}"], 128)
@example([b"{}" + b" " * 300 + b"}", b'{"id":"a"}', b'{"id":"' + b"[" * 300 + b'"}'], 1)
def test_a_record_is_decoded_the_same_alone_and_among_others(values: list[bytes | None], few: int) -> None:
    """Neighbours change nothing, whichever decoder takes a batch and however it is halved."""
    alone = [record_values._decode_one_by_one(batch([value]), SHAPE) for value in values]

    with mock.patch.object(json_values, "_FEWEST_HALVED", few):
        together = decode_values(batch(values), SHAPE)

    assert together.rows() == [frame.row(0) for frame in alone]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(DOCUMENTS.map(dumped), min_size=1, max_size=6))
def test_decoding_with_arrow_agrees_with_decoding_one_by_one_on_all_that_it_accepts(values: list[bytes]) -> None:
    try:
        decoded = decode_with_arrow(batch(list(values)), SHAPE)
    except (UnusualBatch, pa.ArrowInvalid):
        return

    assert decoded.equals(record_values._decode_one_by_one(batch(list(values)), SHAPE))


def test_an_unusual_record_takes_few_neighbours_along_to_decoding_one_by_one() -> None:
    values: list[bytes | None] = [b'{"id":"k%d"}' % number for number in range(1_000)]
    values[700] = b"{}{}"

    with mock.patch.object(record_values, "_decode_one_by_one", wraps=record_values._decode_one_by_one) as one_by_one:
        decoded = decode_values(batch(values), SHAPE)

    assert decoded["key"].to_list() == [None if number == 700 else f"k{number}" for number in range(1_000)]
    assert [call.args[0].num_rows for call in one_by_one.call_args_list] == [1]


def test_typical_records_are_decoded_with_arrow() -> None:
    values: list[bytes | None] = [
        dumped({"id": f"k{n}", "text": "ü", "count": n, "price": Raw("1.5"), "fine": Raw("0.000000001"), "flag": True})
        for n in range(3)
    ]

    decoded = decode_with_arrow(batch(values), SHAPE)

    assert decoded["key"].to_list() == ["k0", "k1", "k2"]
    assert decoded.row(1) == ("k1", None, "ü", "1", "1.50", "0.000000001", "true", None, None, None, [], False)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:40])
def test_hostile_values_stop_nothing_and_leave_their_neighbours_alone(value: bytes | None) -> None:
    good = b'{"id":"good","count":7}'

    decoded = decode_values(batch([good, value, good]), SHAPE)

    assert decoded["key"].to_list()[::2] == ["good", "good"]
    assert decoded["c:count"].to_list()[::2] == ["7", "7"]
    assert (decoded["key"][1] is None) != (decoded["problem"][1] is None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "value is null (a tombstone)"),
        (b"", "value is not JSON"),
        (
            b'\0\0\0\0\xff{"id":"a"}',
            "value is JSON behind the prefix of a schema registry (a zero byte and the number of a schema), as a "
            "serializer of JSON Schema writes it; write `value: json_schema` at the point",
        ),
        (b'\0{"id":"a"}', "value is not JSON"),
        (b"[]", "value is not a JSON object"),
        (b'{"id":"cut', "value is not JSON"),
        (b'{"id":"a"}{"id":"b"}', "value is not JSON"),
        (b'{"id":"\xff"}', "value is not valid UTF-8"),
        (b'{"id":NaN}', "value is not JSON"),
        (b'{"id":"a","other":NaN}', "value is not JSON"),
        (b'{"id":"a","other":[-Infinity]}', "value is not JSON"),
        (b'{"id":"a","x":' + b"[" * 201 + b"]" * 201 + b"}", "value is nested more than 200 deep"),
        (b"{}", "key is null"),
        (b'{"id":{}}', "key is not a scalar"),
        (b'{"id":""}', "key is empty"),
    ],
)
def test_a_record_without_a_key_has_the_reason(value: bytes | None, problem: str) -> None:
    assert key_and_problem(value) == (None, problem)


def test_numbers_keep_every_digit() -> None:
    assert key_and_problem(b'{"id":9007199254740993}') == ("9007199254740993", None)
    decoded = decode_values(batch([b'{"id":"a","count":9007199254740993,"price":9007199254740993.10}']), SHAPE)
    assert decoded.select("c:count", "c:price").row(0) == ("9007199254740993", "9007199254740993.10")


def test_a_missing_value_null_and_the_empty_text_are_distinguished() -> None:
    decoded = decode_values(batch([b'{"id":"a"}', b'{"id":"a","text":null}', b'{"id":"a","text":""}']), SHAPE)

    assert decoded["c:text"].to_list() == [None, None, ""]


# Keys from elsewhere


def test_keys_are_read_from_the_record_key_and_from_headers() -> None:
    shape = ValueShape(key=("kafka.key", "header:tenant"), compare={})
    tenant = [{"key": "tenant", "value": b"t1"}]
    cases: list[tuple[bytes | None, list[dict[str, Any]], str | None, str | None]] = [
        (b"a", tenant, '["a","t1"]', None),
        (None, tenant, None, "key is null"),
        (b"\xff", tenant, None, "record key is not valid UTF-8"),
        (b"a", [], None, "header tenant is missing"),
        (b"a", tenant * 2, None, "header tenant is doubled"),
        (b"a", [{"key": "tenant", "value": None}], None, "key is null"),
        (b"a", [{"key": "x", "value": b""}] * 10_000 + tenant, '["a","t1"]', None),
    ]

    decoded = decode_values(batch([None] * 7, [case[0] for case in cases], [case[1] for case in cases]), shape)

    assert decoded.select("key", "problem").rows() == [(case[2], case[3]) for case in cases]


def test_nested_paths_are_followed_by_both_decoders() -> None:
    shape = ValueShape(key=("$.a.b",), compare={})
    values: list[bytes | None] = [b'{"a":{"b":"x"}}', b'{"a":{"b":"y","c":1}}']

    assert decode_with_arrow(batch(values), shape)["key"].to_list() == ["x", "y"]
    assert decode_values(batch([*values, b'{"a":null}', b'{"a":"b"}']), shape)["key"].to_list() == [
        "x",
        "y",
        None,
        None,
    ]


@pytest.mark.parametrize(("declared", "text"), [("string", "5"), ("decimal(6,1)", "5.0"), ("int", "5")])
def test_a_compared_column_that_is_the_key_too_keeps_its_declared_type(declared: str, text: str) -> None:
    shape = ValueShape(key=("$.id",), compare={"id": declared})

    assert decode_values(batch([b'{"id":5}']), shape).row(0) == ("5", None, text, None, [], False)


def test_filters_name_the_hops_that_a_record_does_not_pass() -> None:
    shape = ValueShape(
        key=("$.id",),
        compare={},
        filters={
            "a→b": (typed_term("cancelled", False), typed_term("n", 1)),
            "a→c": (typed_term("n", Decimal("1.5")),),
        },
    )
    values: list[bytes | None] = [b'{"id":"1","cancelled":false,"n":1}', b'{"id":"2","n":1.5}', b'{"id":"3"}']

    assert decode_values(batch(values), shape)["excluded_by"].to_list() == [["a→c"], ["a→b"], ["a→b", "a→c"]]


def test_no_records_give_no_rows_with_all_columns() -> None:
    decoded = decode_values(batch([]), SHAPE)

    assert decoded.is_empty()
    compared = [f"c:{name}" for name in SHAPE.compare]
    assert decoded.columns == ["key", "problem", *compared, "version", "excluded_by", "is_tombstone"]
    assert decoded.schema["excluded_by"] == pl.List(pl.String)
