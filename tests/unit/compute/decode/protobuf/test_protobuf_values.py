"""Check that Protobuf values are decoded right: many as each alone, and as JSON of the same."""

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.schema_texts import SchemaText
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.keys import KeyProblem
from makewhole.model.points import KeyType
from tests.unit.compute.decode.avro.test_avro_values import TYPES, as_json
from tests.unit.compute.decode.avro.written import batch, prefix
from tests.unit.compute.decode.protobuf.messages import (
    FIELD,
    OPTIONAL,
    REPEATED,
    VALUES,
    Schemas,
    class_of,
    files,
    fill,
    new_file,
)
from tests.world.examples import examples

pytestmark = pytest.mark.unit

ORDER_FIELDS: list[tuple[Any, ...]] = [
    ("id", FIELD.TYPE_INT64),
    ("state", ".shop.State"),
    ("total", FIELD.TYPE_STRING),
    ("note", FIELD.TYPE_STRING, OPTIONAL, "optional"),
    ("at", ".google.protobuf.Timestamp"),
    ("lines", ".shop.Line", REPEATED),
    ("to", ".shop.Line"),
    ("raw", FIELD.TYPE_BYTES),
    ("big", FIELD.TYPE_UINT64),
    ("limit", ".google.protobuf.Int64Value"),
]
LINE_FIELDS: list[tuple[Any, ...]] = [("sku", FIELD.TYPE_STRING), ("n", FIELD.TYPE_SINT32)]
FILE = new_file(Order=ORDER_FIELDS, Line=LINE_FIELDS)
Order = class_of(FILE)
Line = type(Order().lines.add())
SCHEMAS = Schemas({"ids/7": FILE})
FIRST = b"\x00"


def order(number: int, **more: Any) -> Any:
    made = Order(id=number, state=1, total="7.5", raw=b"\x01\xff", big=2**64 - 1, **more)
    made.at.seconds, made.at.nanos = 1_359_633_600, 500_000
    made.to.sku = "ü"
    return made


def good(number: int, **more: Any) -> bytes:
    content: bytes = order(number, **more).SerializeToString()
    return prefix(7) + FIRST + content


def shape_of(schemas: Schemas, compare: dict[str, str], **more: Any) -> ValueShape:
    """Return a shape with columns whose names are paths."""
    places = {name: f"$.{name}" for name in compare}
    return ValueShape(key=("$.id",), compare=compare, places=places, format=ProtobufFormat(schemas), **more)


def test_a_value_has_the_fields_that_json_would_have() -> None:
    assert ProtobufFormat(SCHEMAS).document(good(7, lines=[Line(sku="a", n=-1)]), ()) == {
        "id": 7,
        "state": "PAID",
        "total": "7.5",
        "note": None,
        "at": "2013-01-31T12:00:00.000500Z",
        "lines": [{"sku": "a", "n": -1}],
        "to": {"sku": "ü", "n": 0},
        "raw": "\\x01ff",
        "big": 2**64 - 1,
        "limit": None,
    }


def test_many_values_are_decoded_at_once() -> None:
    compare = {"state": "string", "total": "decimal(12,3)", "note": "string", "at": "timestamp", "to.n": "int"}
    shape = shape_of(SCHEMAS, {**compare, "absent": "string", "limit": "int"}, key_layout=(KeyType.BIGINT,))
    values: list[bytes | None] = [
        prefix(7) + FIRST + Order(id=number, total="7.5", note="", state=9).SerializeToString() for number in range(300)
    ]

    _, left = shape.format.decode_together(batch(values), record_values._wanted(shape))

    assert not len(left)
    decoded = decode_values(batch(values), shape)
    assert decoded["key"].to_list() == [str(number) for number in range(300)]
    assert decoded.drop("key", "is_tombstone").unique().rows() == [
        (None, "9", "7.500", "", None, None, None, None, None, [])
    ]


NO_INDEX = "value does not say which message of its schema it is"
NO_TYPE = "does not describe the value: its file has no message of this number"
NO_MESSAGE = "value is no message of its schema"
BAD: dict[str, tuple[bytes | None, str]] = {
    "a tombstone": (None, "value is null (a tombstone)"),
    "an unknown schema": (prefix(8) + good(1)[5:], "schema ids/8 is not in the registry"),
    "prefix alone": (prefix(7), NO_INDEX),
    "an endless index": (prefix(7) + b"\xff" * 9, NO_INDEX),
    "no such message": (
        prefix(7) + b"\x02\x0c",
        "schema ids/7 does not describe the value: its file has no message of this number",
    ),
    "cut off": (good(1)[:-1], NO_MESSAGE),
    "a wire type that there is not": (good(1) + b"\x07", NO_MESSAGE),
    "text that is no UTF-8": (prefix(7) + FIRST + b"\x08\x02\x1a\x02\xc3\x28", NO_MESSAGE),
}


@pytest.mark.parametrize(("value", "problem"), BAD.values(), ids=BAD)
def test_a_bad_value_is_named_and_leaves_its_neighbours_alone(value: bytes | None, problem: str) -> None:
    shape = shape_of(SCHEMAS, {"state": "string", "total": "decimal(12,2)"})

    decoded = decode_values(batch([good(1), value, good(2), good(3)]), shape)

    assert decoded["key"].to_list() == ["1", None, "2", "3"]
    assert decoded["problem"].to_list() == [None, problem, None, None]
    assert decoded["c:total"].to_list() == ["7.50", None, "7.50", "7.50"]


def test_the_message_of_a_file_is_found_by_its_index() -> None:
    """As Confluent's serializers write it: one zero for the first, else a count and the numbers, in zigzag."""
    outer = new_file(Other=[("x", FIELD.TYPE_INT64)], Order=[("id", FIELD.TYPE_INT64)])
    inner = outer.message_type[1].nested_type.add(name="Part")
    inner.field.add(name="id", number=1, type=FIELD.TYPE_STRING, label=OPTIONAL)
    schemas = Schemas({"ids/7": outer})
    second = class_of(outer, 1)(id=5).SerializeToString()
    nested = class_of(outer, 1, 0)(id="n").SerializeToString()

    decoded = decode_values(
        batch([prefix(7) + b"\x02\x02" + second, prefix(7) + b"\x04\x02\x00" + nested]), shape_of(schemas, {})
    )

    assert decoded["key"].to_list() == ["5", "n"]


@pytest.mark.parametrize("index", [b"\x01\x01", b"\x01\x08", b"\x02\x01\x00"])
def test_an_index_in_the_deprecated_form_is_refused_and_read_as_no_other(index: bytes) -> None:
    """`01 08` of the ninth message would be the first, and its body one of a field with the number one."""
    numbered = {f"Message{number}": [("id", FIELD.TYPE_INT64)] for number in range(10)}
    schemas = Schemas({"ids/7": new_file(**numbered)})
    body = class_of(new_file(**numbered), 8)(id=5).SerializeToString()

    decoded = decode_values(batch([prefix(7) + index + body]), shape_of(schemas, {}))

    assert decoded.select("key", "problem").rows() == [
        (
            None,
            "value has the index of its message in the deprecated form; set `use.deprecated.format` to false at its "
            "producers",
        )
    ]


def test_values_of_a_schema_file_have_no_prefix() -> None:
    files_of_set = descriptor_pb2.FileDescriptorSet(file=[FILE])
    text = SchemaText(base64.b64encode(files_of_set.SerializeToString()).decode())
    schemas = Schemas({}, are_named=False)
    schemas._texts["file"] = text
    values: list[bytes | None] = [Line(sku="a", n=3).SerializeToString()]

    lines = ValueShape(key=("$.sku",), compare={"n": "int"}, format=ProtobufFormat(schemas, "shop.Line"))
    named = decode_values(batch(values), lines)
    first = ProtobufFormat(schemas).document(good(1)[6:], ())

    assert named.select("key", "c:n").rows() == [("a", "3")]
    assert first["id"] == 1
    with pytest.raises(KeyProblem, match=r"it has no message shop\.No"):
        ProtobufFormat(schemas, "shop.No").document(b"", ())


def test_what_is_there_twice_is_merged_as_the_library_merges_it() -> None:
    """The later number, the fields of both messages, the member of a oneof that was set last."""
    choice = [("a", FIELD.TYPE_INT32, OPTIONAL, "choice"), ("b", FIELD.TYPE_INT32, OPTIONAL, "choice")]
    file = new_file(Order=[("id", FIELD.TYPE_INT64), ("to", ".shop.Line"), *choice], Line=LINE_FIELDS)
    kind = class_of(file)
    halves = [kind(id=1, to={"sku": "s"}, a=1), kind(id=2, to={"n": 3}, b=2)]
    value = prefix(7) + FIRST + b"".join(half.SerializeToString() for half in halves)
    compare = {"to.sku": "string", "to.n": "int", "a": "int", "b": "int"}

    decoded = decode_values(batch([value] * 3), shape_of(Schemas({"ids/7": file}), compare))

    assert decoded.select("key", "c:to.sku", "c:to.n", "c:a", "c:b").rows() == [("2", "s", "3", None, "2")] * 3


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_each_type_is_rendered_many_at_once_as_alone_in_every_declared_type(kind: int, data: st.DataObject) -> None:
    columns = {f"f{number}": declared for number, declared in enumerate(TYPES)}
    file = new_file(Order=[("id", kind), ("v", kind, OPTIONAL, "optional"), *((name, kind) for name in columns)])
    message = class_of(file)
    raw = data.draw(st.lists(VALUES[kind], min_size=2, max_size=5))
    made = [message(id=value, v=value, **dict.fromkeys(columns, value)) for value in raw]
    values: list[bytes | None] = [prefix(1) + FIRST + made_message.SerializeToString() for made_message in made]
    shape = shape_of(Schemas({"ids/1": file}), columns, version="$.v")

    decoded = decode_values(batch(values), shape)

    assert decoded.rows() == record_values._decode_one_by_one(batch(values), shape).rows()


@settings(max_examples=examples(200), deadline=None)
@given(files(), st.data())
def test_many_values_are_decoded_as_each_alone_and_as_json_of_the_same(file: Any, data: st.DataObject) -> None:
    kind = class_of(file)
    names = [field.name for field in kind.DESCRIPTOR.fields]
    paths = [path for name in names for path in (name, f"{name}.sku", f"{name}.at", f"{name}.rest.n")]
    compare = {path: data.draw(st.sampled_from(TYPES)) for path in paths if path != "id"}
    version = data.draw(st.sampled_from([None, *(f"$.{path}" for path in paths)]))
    shape = shape_of(Schemas({"ids/1": file}), compare, version=version)
    messages = [fill(data, kind(id=number)) for number in range(data.draw(st.integers(1, 4)))]
    values: list[bytes | None] = [prefix(1) + FIRST + message.SerializeToString() for message in messages]

    together = decode_values(batch(values), shape)

    alone = record_values._decode_one_by_one(batch(values), shape)
    assert together.rows() == alone.rows()
    documents = [shape.format.document(value, ()) for value in values]
    texts: list[bytes | None] = [as_json(document).encode() for document in documents]
    of_json = ValueShape(key=shape.key, compare=compare, places=shape.places, version=version, format=JSON)
    assert decode_values(batch(texts), of_json).rows() == alone.rows()


@settings(max_examples=examples(200), deadline=None)
@given(files(), st.data(), st.binary(max_size=6), st.integers(0, 40), st.integers(0, 3))
def test_damaged_values_are_taken_or_left_as_each_alone(
    file: Any, data: st.DataObject, damage: bytes, at: int, removed: int
) -> None:
    kind = class_of(file)
    compare = {field.name: "string" for field in kind.DESCRIPTOR.fields if field.name != "id"}
    shape = shape_of(Schemas({"ids/1": file}), compare)
    usual, other = (fill(data, kind(id=number)).SerializeToString() for number in range(2))
    damaged = [usual[:at] + damage + usual[at + removed :], usual + other]
    values: list[bytes | None] = [prefix(1) + FIRST + value for value in (usual, *damaged, usual)]

    decoded = decode_values(batch(values), shape)

    assert decoded.rows() == record_values._decode_one_by_one(batch(values), shape).rows()


@settings(max_examples=examples(150), deadline=None)
@given(files(), st.data())
def test_what_is_encoded_is_read_back(file: Any, data: st.DataObject) -> None:
    kind = class_of(file)
    form = ProtobufFormat(Schemas({"ids/1": file}))
    value = prefix(1) + FIRST + fill(data, kind(id=1)).SerializeToString()
    text = as_json(form.document(value, ()))
    try:
        encoded = form.encode(text.encode())
    except KeyProblem:
        return
    assert as_json(form.document(encoded, ())) == text


def test_a_record_is_encoded_as_its_producers_would() -> None:
    document = {"id": 7, "state": "PAID", "total": "7.5", "at": "2013-01-31T12:00:00.0005+00:00", "to": {"sku": "ü"}}
    document |= {"raw": "\\x01ff", "big": 2**64 - 1, "note": None, "lines": [{"n": -1}], "limit": 3}

    value = ProtobufFormat(SCHEMAS).encode(json.dumps(document).encode())

    expected = order(7, lines=[Line(n=-1)])
    expected.limit.value = 3
    assert value[6:] == expected.SerializeToString(deterministic=True)
    assert value[:6] == prefix(7) + FIRST
    line = prefix(7) + b"\x02\x02" + Line(n=1).SerializeToString()
    assert ProtobufFormat(SCHEMAS, "shop.Line").encode(b'{"n": 1}') == line


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b'{"other": 1}', "other is no field of its topic's schema"),
        (b'{"total": null}', "total is null, and its field in the topic's schema cannot be"),
        (b'{"id": 7.5}', "id does not fit its type in the topic's schema"),
        (b'{"id": 9223372036854775808}', "id does not fit its type in the topic's schema"),
        (b'{"state": "SENT"}', "state does not fit its type in the topic's schema"),
        (b'{"to": {"n": "x"}}', "to.n does not fit its type in the topic's schema"),
        (b'{"at": "yesterday"}', "at does not fit its type in the topic's schema"),
        (b'{"total": 7}', "total does not fit its type in the topic's schema"),
        (b"[]", "value is not a JSON object"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(document: bytes, problem: str) -> None:
    with pytest.raises(KeyProblem) as caught:
        ProtobufFormat(SCHEMAS).encode(document)
    assert str(caught.value) == problem


def proto2_types() -> Any:
    """Return a proto2 file whose texts are not checked by Google's library."""
    text, whole = FIELD.TYPE_STRING, FIELD.TYPE_INT64
    file = new_file(Order=[("id", whole), ("v", text), ("more", text, REPEATED), ("map", ".shop.Entry", REPEATED)])
    file.syntax = "proto2"
    entry = file.message_type[0].nested_type.add(name="MapEntry")
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, label=OPTIONAL, type=text)
    entry.options.map_entry = True
    file.message_type[0].field[3].type_name = ".shop.Order.MapEntry"
    return file


@pytest.mark.parametrize(
    "content",
    [b"\x12\x02\xc3\x28", b"\x1a\x02\xc3\x28", b"\x22\x06\x0a\x02\xc3\x28\x12\x00", b"\x22\x04\x12\x02\xc3\x28"],
    ids=["a field", "a list", "a name in a map", "a value in a map"],
)
@pytest.mark.parametrize("path", [None, ("more",)])
def test_text_of_proto2_that_is_no_utf_8_is_a_bad_value(content: bytes, path: tuple[str, ...] | None) -> None:
    schemas = Schemas({"ids/7": proto2_types()})
    form = ProtobufFormat(schemas)
    values: list[bytes | None] = [prefix(7) + FIRST + b"\x08\x07\x1a\x01a" + more for more in (b"", content)]
    shape = shape_of(schemas, {"v": "string"})
    records = batch(values)
    if path is not None:
        elements = Elements(path=path, format=form)
        shape = ValueShape(key=("$.id",), compare={}, format=ElementFormat(), elements=elements)
        records = elements.divided(records, shape.fields).batch

    decoded = decode_values(records, shape)

    problem = "value is not valid UTF-8"
    assert decoded.select("key", "problem").rows() == [("7", None), (None, problem)]
    with pytest.raises(KeyProblem, match=problem):
        form.document(values[1], ())


def paid_by(kind: int = FIELD.TYPE_STRING, name: str = "method") -> Any:
    text = FIELD.TYPE_STRING
    choices = [("card", text, OPTIONAL, name), ("cash", text, OPTIONAL, name), ("gift", text, OPTIONAL, "optional")]
    file = new_file(
        Order=[("id", text), *choices, ("more", text, OPTIONAL, "optional"), ("map", ".shop.Entry", REPEATED)]
    )
    entry = file.message_type[0].nested_type.add(name="MapEntry")
    for number, (field, of) in enumerate((("key", kind), ("value", text)), 1):
        entry.field.add(name=field, number=number, label=OPTIONAL, type=of)
    entry.options.map_entry = True
    file.message_type[0].field[-1].type_name = ".shop.Order.MapEntry"
    return file


@pytest.mark.parametrize("within", [False, True])
def test_two_fields_of_a_oneof_are_refused(within: bool) -> None:
    file = paid_by()
    if within:
        outer = file.message_type.add(name="Outer")
        outer.field.add(name="o", number=1, label=OPTIONAL, type=FIELD.TYPE_MESSAGE, type_name=".shop.Order")
        file.message_type.reverse()  # the type of its first name is made
        file.message_type.sort(key=lambda message: message.name != "Outer")
    form = ProtobufFormat(Schemas({"ids/7": file}))

    def encoded(fields: dict[str, Any]) -> Any:
        document = form.document(form.encode(json.dumps({"o": fields} if within else fields).encode()), ())
        return document["o"] if within else document

    own = {"id": "1", "gift": "a", "more": "b"}
    for paid in ({"card": "4711", "cash": None}, {"cash": "12", "card": None}, {"card": None, "cash": None}):
        assert encoded({**own, **paid}) == {**own, **paid, "map": {}}
    place = "o." if within else ""
    with pytest.raises(
        KeyProblem, match=f"^{place}card and {place}cash are of one oneof in the topic's schema, which holds one"
    ):
        encoded({**own, "card": "4711", "cash": "12"})


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (FIELD.TYPE_BOOL, ["true", "false"], ["True", "1", "0", "", "yes", " true"]),
        (FIELD.TYPE_INT32, ["0", "-7", "12"], ["01", "+1", " 1", "1_0", "-0", "\u0661", "1.0", "x", str(2**31)]),
        (FIELD.TYPE_STRING, ["", "01", "true"], []),
    ],
    ids=["boolean", "integer", "text"],
)
def test_a_name_in_a_map_is_that_of_its_key_or_refused(kind: int, good: list[str], bad: list[str]) -> None:
    form = ProtobufFormat(Schemas({"ids/7": paid_by(kind)}))

    written = form.encode(json.dumps({"map": dict.fromkeys(good, "v")}).encode())

    assert form.document(written, ())["map"] == dict.fromkeys(good, "v")
    for name in bad:
        with pytest.raises(KeyProblem, match=r"^map does not fit its type in the topic's schema"):
            form.encode(json.dumps({"map": {name: "v"}}).encode())
