"""Test the formats whose rows lie in envelopes: Kafka Connect's, Debezium's change events, and a JSON string."""

import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.value_format import EVENT, Deletion, ValueFormat
from makewhole.compute.decode.whole_values import BytesFormat, JsonInStringFormat, TextFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.row_filter import typed_term
from makewhole.model.points import KeyType
from tests.unit.compute.decode.connect.samples import key_of, value_of
from tests.world.envelopes import bare_change_event, change_event, compact, connect_value, enveloped, json_in_string
from tests.world.examples import examples
from tests.world.orders import orders

pytestmark = pytest.mark.unit

COMPARE = {"amount": "decimal(8,2)", "at": "timestamp", "region": "string", "number": "int"}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(values: list[bytes | None], keys: list[bytes | None] | None = None) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array(keys or [None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array([[]] * len(values), HEADERS),
        }
    )


def one_by_one(values: list[bytes | None], shape: ValueShape, keys: list[bytes | None] | None = None) -> pl.DataFrame:
    """Decode each record alone."""
    return record_values._decode_one_by_one(batch(values, keys), shape)


def reason(form: ValueFormat, value: bytes | None) -> str:
    with pytest.raises(KeyProblem) as caught:
        form.document(value, None)
    return str(caught.value)


# Real records


def test_a_deletion_and_a_snapshot_of_debezium_are_read_with_and_without_a_schema() -> None:
    for name in ("delete", "delete without schema"):
        with pytest.raises(Deletion) as caught:
            ChangeEventFormat().document(value_of(name), None)
        assert caught.value.row is not None
        assert caught.value.row["id"] == 3
        assert caught.value.row[EVENT]["source"]["lsn"] > 0
    typed = ChangeEventFormat().document(value_of("insert"), None)
    bare = ChangeEventFormat().document(value_of("insert without schema"), None)
    assert (typed["id"], typed["ts3"], bare["id"], bare["ts3"]) == (2, "2013-01-31T12:00:00.123Z", 2, 1359633600123)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("truncate", "value says that the whole table was truncated (op t): which keys it deletes is not known"),
        ("message", "value is a message of the source (op m), and of no row"),
    ],
)
def test_events_of_no_row_are_no_copies_and_say_why(name: str, expected: str) -> None:
    assert reason(ChangeEventFormat(), value_of(name)) == expected


def test_connects_deletion_is_a_payload_of_null() -> None:
    with pytest.raises(Deletion, match="a payload of null") as caught:
        ConnectFormat().document(value_of("unwrapped delete"), None)
    assert caught.value.row is None


def test_the_outbox_routers_json_is_read_from_its_string() -> None:
    document = {"lines": [{"sku": "a"}], "total": 12.5}

    assert json.loads(json.dumps(ConnectFormat().document(value_of("outbox"), None), default=float)) == document
    in_string = JsonInStringFormat().document(value_of("outbox without schema"), None)
    assert json.loads(json.dumps(in_string, default=float)) == document


@pytest.mark.parametrize(
    ("name", "form", "place", "key"),
    [
        ("insert", "connect", "kafka.key.id", "2"),
        ("insert without schema", "json", "kafka.key.id", "2"),
        ("outbox", "connect", "kafka.key", "100"),
        ("outbox without schema", "json", "kafka.key", "100"),
        ("outbox without schema", "string", "kafka.key", '"100"'),
        ("outbox without schema", "bytes", "kafka.key", r"\x2231303022"),
    ],
)
def test_record_keys_are_read_by_their_format(name: str, form: str, place: str, key: str) -> None:
    shape = ValueShape(key=(place,), compare={}, record_key=RECORD_KEY_FORMATS[form])

    assert shape.needs_record_key
    assert decode_values(batch([b"{}"], [key_of(name)]), shape)["key"].to_list() == [key]


@pytest.mark.parametrize(
    ("form", "place", "raw", "problem"),
    [
        ("json", "kafka.key", b'{"id":1}', "key is not a scalar"),
        ("json", "kafka.key.id", b'"1"', "record key is no object, and has no field"),
        ("string", "kafka.key.id", b"1", "record key is no object, and has no field"),
        ("json", "kafka.key.id", b"x", "record key is not JSON"),
        ("json", "kafka.key.id", None, "key is null"),
        ("connect", "kafka.key.id", b'{"id":1}', "record key is no envelope of schema and payload"),
        ("connect", "kafka.key.id", b"\xff", "record key is not valid UTF-8"),
    ],
)
def test_a_record_key_that_cannot_be_read_has_its_reason(
    form: str, place: str, raw: bytes | None, problem: str
) -> None:
    shape = ValueShape(key=(place,), compare={}, record_key=RECORD_KEY_FORMATS[form])

    assert decode_values(batch([b"{}"], [raw]), shape)["problem"].to_list() == [problem]


# What is no value of the format


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        (ConnectFormat(), None, "value is null (a tombstone)"),
        (ConnectFormat(), b'{"id":1}', "value is no envelope of schema and payload; write `value: json`"),
        (ConnectFormat(), b'{"schema":null,"payload":{},"more":1}', "value is no envelope of schema and payload"),
        (ConnectFormat(), b'{"schema":null,"payload":"text"}', "value has a payload that is not an object"),
        (ConnectFormat(), b'{"schema":null,"payload":{}', "value is not JSON"),
        (ConnectFormat(), b'{"schema":null,"payload":1}{}', "value is not JSON"),
        (ConnectFormat(), b"\xff", "value is not valid UTF-8"),
        (ConnectFormat(), b'{"schema":null,"payload":%s}' % (b"[" * 200 + b"]" * 200), "nested more than 200 deep"),
        (ChangeEventFormat(), None, "value is null (a tombstone"),
        (ChangeEventFormat(), b'{"id":1}', "value is no change event of Debezium (before, after, op)"),
        (ChangeEventFormat(), b"[]", "value is no change event of Debezium"),
        (ChangeEventFormat(), b'{"op":"c","after":null}', "value is a change event without the row after the change"),
        (ChangeEventFormat(), b'{"op":"c"}', "value is a change event without the row after the change"),
        (ChangeEventFormat(), b'{"op":{},"after":{}}', "value is a change event of an unknown kind"),
        (ChangeEventFormat(), b'{"op":"x","after":{}}', "value is a change event of an unknown kind"),
        (JsonInStringFormat(), b'{"id":1}', "value is no JSON string that holds an object"),
        (JsonInStringFormat(), b'"[1]"', "value is not a JSON object"),
        (JsonInStringFormat(), b'"\\ud800"', "value is not"),
        (JsonInStringFormat(), None, "value is null (a tombstone)"),
        (TextFormat(), b"\xff", "value is not valid UTF-8"),
        (TextFormat(), None, "value is null (a tombstone)"),
        (BytesFormat(), None, "value is null (a tombstone)"),
    ],
)
def test_a_value_that_is_none_of_its_format_has_a_reason(form: ValueFormat, value: bytes | None, expected: str) -> None:
    assert expected in reason(form, value)


def test_an_opening_that_was_seen_before_reads_what_a_new_parser_reads() -> None:
    seen = ConnectFormat()
    good = b'{"schema":{"type":"struct"},"payload":{"a":1}}'
    values = [
        good,
        b'{"schema":{"type":"struct"},"payload":{"a":1},"payload":{"a":2}}',
        b'{"schema":{"type":"struct"},"payload":{"a":1},"x":{}}',
        b'{"schema":{"type":"struct"},"payload":\xef\xbb\xbf{"a":1}}',
        b'{"schema":{"type":"struct"},"payload":}',
        b' { "schema" : {"type":"struct"} , "payload" : {"a":1} } \n',
        b'{"payload":{"a":1},"schema":{"type":"struct"}}',
        b'{"schema":{"type":"struct"},"schema":null,"payload":{"a":1}}',
    ]

    def read(form: ConnectFormat, value: bytes) -> Any:
        try:
            return form.document(value, None)
        except KeyProblem as problem:
            return str(problem)

    assert seen.document(good, None) == {"a": 1}
    for value in values:
        assert read(seen, value) == read(ConnectFormat(), value), value


# Deletions


DELETING = ValueShape(
    key=("$.id",),
    compare={"region": "string"},
    version="event:source.lsn",
    format=ChangeEventFormat(),
    keeps_tombstones=True,
    filters={"a→b": (typed_term("region", "EU"),)},
)


def test_a_deletion_is_a_version_of_its_key_with_the_key_of_the_row_before() -> None:
    order = orders(range(1))[0]
    values: list[bytes | None] = [change_event("c", order, 5), change_event("d", order, 9), None]

    decoded = decode_values(batch(values), DELETING)

    assert decoded.select("key", "c:region", "version", "excluded_by", "is_tombstone").rows() == [
        ("O0", "EU", 5, [], False),
        ("O0", None, 9, [], True),
        (None, None, None, [], True),
    ]
    assert "`tombstones.on.delete=false`" in decoded["problem"][2]


@pytest.mark.parametrize("value", [value_of("delete"), value_of("unwrapped delete")], ids=["event", "payload"])
@pytest.mark.parametrize("heeds", [False, True])
def test_a_deletion_is_no_copy_where_deletions_say_nothing(value: bytes, heeds: bool) -> None:
    form = ConnectFormat() if value == value_of("unwrapped delete") else ChangeEventFormat()
    shape = ValueShape(
        key=("kafka.key.id",),
        compare={},
        format=form,
        record_key=RECORD_KEY_FORMATS["connect"],
        tombstones_erase=heeds,
    )

    decoded = decode_values(batch([value, None], [key_of("delete")] * 2), shape)

    assert decoded["key"].to_list() == (["3", "3"] if heeds else [None, None])
    assert decoded["is_tombstone"].to_list()[0] is heeds


def test_what_is_not_known_of_a_deleted_row_is_no_key() -> None:
    decoded = decode_values(batch([b'{"op":"d","before":null,"after":null}']), DELETING)

    assert decoded["problem"].to_list() == ["key is null"]


# Many at once


FORMATS: Mapping[str, Any] = {
    "connect": (ConnectFormat, connect_value),
    "debezium": (ChangeEventFormat, lambda order: change_event("u", order)),
    "bare": (ChangeEventFormat, lambda order: bare_change_event("u", order)),
    "json_in_string": (JsonInStringFormat, json_in_string),
}


@pytest.mark.parametrize("name", ["connect", "debezium", "bare"])
@pytest.mark.parametrize("place", ["$.id", "kafka.key.id", "kafka.key"])
def test_usual_records_are_decoded_together(name: str, place: str) -> None:
    make, write = FORMATS[name]
    keys = "connect" if name == "connect" else "json"
    shape = ValueShape(key=(place,), compare=COMPARE, format=make(), record_key=RECORD_KEY_FORMATS[keys])
    made = orders(range(500))
    values: list[bytes | None] = [write(order) for order in made]
    key_of_record: Any = str if place == "kafka.key" else (lambda key: {"id": key})
    raw_keys = [key_of_record(order["id"]) for order in made]
    record_keys: list[bytes | None] = [
        enveloped({"type": "x"}, key) if keys == "connect" else compact(key) for key in raw_keys
    ]

    with mock.patch.object(record_values, "_decode_one_by_one") as alone:
        decoded = decode_values(batch(values, record_keys), shape)

    assert not alone.called
    assert decoded.row(7)[:6] == ("O7", None, "7.50", "1740787620000000", "US", "7")
    assert decoded.equals(one_by_one(values, shape, record_keys))


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([1.5, 1740787620000000, 9223372036825200000, -(10**18), 10**30, 253402300800000000]),
    st.sampled_from(["AfQ=", "/w==", "", "x", "ü", '"', "2013-01-31T12:00:00Z", "__debezium_unavailable_value"]),
    st.just({"a": 1}),
    st.just(["__debezium_unavailable_value"]),
)
ROWS = st.dictionaries(st.sampled_from(["id", "number", "region", "amount", "at", "source"]), LEAVES, max_size=6)
TYPES: list[dict[str, Any] | None] = [
    {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
    {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
    {"type": "int32", "name": "io.debezium.time.Date"},
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    {"type": "bytes"},
    {"type": "string"},
    {"type": "struct", "fields": [{"field": "a", "type": "bytes"}]},
    {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
    None,
]
SCHEMAS = st.fixed_dictionaries(
    {name: st.sampled_from(TYPES) for name in ("id", "number", "region", "amount", "at")}
).map(
    lambda types: {
        "type": "struct",
        "fields": [{**kind, "field": name} for name, kind in types.items() if kind is not None],
    }
)
DECLARED = st.fixed_dictionaries(
    {
        name: st.sampled_from(["string", "int", "decimal(8,2)", "timestamp", "timestamp(3)", "date", "double", "json"])
        for name in ("number", "region", "amount", "at")
    }
)
SOUND = st.builds(lambda key, rest: {**rest, "id": key}, st.sampled_from(["a", "b", "c"]), ROWS)


RAW_KEYS = st.sampled_from(
    [
        *(
            b"O1",
            b"",
            b"O1\x00",
            b"\xff",
            b"7",
            b"-0",
            b"07",
            b"1.50",
            b'"7"',
            b'"a b"',
            b'"a\\"b"',
            b'""',
            b'"\n"',
            b"null",
        ),
        *(b'{"id":"7"}', b'{"id":7}', b'{"id":{}}', b'{"id":null}', b'{"id":"\\u0037"}', b'{"x":1}', b"[1]"),
        enveloped({"type": "string"}, "O1"),
        enveloped({"type": "bytes"}, "AP8="),
        enveloped({"type": "int64"}, 7),
        enveloped({"type": "struct", "fields": [{"type": "int64", "field": "id"}]}, {"id": 7}),
        enveloped({"type": "struct", "fields": [{"type": "bytes", "field": "id"}]}, {"id": "AP8="}),
        enveloped({"type": "struct"}, None),
    ]
)


def events(rows: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ops = st.sampled_from(["c", "u", "r", "d", "t", "x"])
    source = st.fixed_dictionaries({"lsn": st.sampled_from([None, 1, "2", 3.5])})
    return st.builds(
        lambda op, row, before, source: {"before": before, "after": row, "source": source, "op": op},
        st.one_of(st.just("c"), ops),
        st.one_of(rows, st.none()),
        st.one_of(st.none(), SOUND),
        source,
    )


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_many_at_once_are_read_as_one_by_one(data: st.DataObject) -> None:
    """Rows of few schemas, plain and enveloped, events and others, with a few broken ones between them."""
    is_event = data.draw(st.booleans())
    schemas = data.draw(st.lists(SCHEMAS, min_size=1, max_size=2))
    rows = st.one_of(SOUND, SOUND, SOUND, ROWS)
    payloads = data.draw(st.lists(events(rows) if is_event else rows, min_size=1, max_size=12))
    values: list[bytes | None] = []
    for payload in payloads:
        schema = data.draw(st.sampled_from([*schemas, None]))
        kind = data.draw(st.sampled_from(["enveloped"] * 6 + ["bare", "broken", "null", "null payload"]))
        if is_event and schema is not None:
            fields = [{**schema, "field": "after"}, {**schema, "field": "before"}]
            schema = {"type": "struct", "fields": fields}
        written = enveloped(schema or {}, None if kind == "null payload" else payload)
        bare = json.dumps(payload).encode()
        values.append({"bare": bare, "broken": written[:-2], "null": None}.get(kind, written))
    plain: list[ValueFormat] = [ConnectFormat(), JSON]
    form: ValueFormat = ChangeEventFormat() if is_event else data.draw(st.sampled_from(plain))
    if form is JSON:
        values = [
            None if value is None else json.dumps(row).encode() for value, row in zip(values, payloads, strict=True)
        ]
    record_key = RECORD_KEY_FORMATS[data.draw(st.sampled_from([*RECORD_KEY_FORMATS]))]
    keys = data.draw(st.lists(st.one_of(st.none(), RAW_KEYS), min_size=len(values), max_size=len(values)))
    shape = ValueShape(
        key=(data.draw(st.sampled_from(["$.id", "kafka.key", "kafka.key.id"])),),
        key_layout=(data.draw(st.sampled_from([KeyType.STRING, KeyType.BIGINT, KeyType.UUID])),),
        record_key=record_key,
        compare=data.draw(DECLARED),
        format=form,
        version=data.draw(st.sampled_from([None, "$.number", "$.at", *(["event:source.lsn"] if is_event else [])])),
        keeps_tombstones=data.draw(st.booleans()),
    )

    alone = [one_by_one([value], shape, [key]).row(0) for value, key in zip(values, keys, strict=True)]

    assert decode_values(batch(values, keys), shape).rows() == alone
    assert one_by_one(values, shape, keys).rows() == alone
