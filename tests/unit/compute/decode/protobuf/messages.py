"""Make Protobuf types and messages, by Google's library, and draw them."""

import base64
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from hypothesis import strategies as st

from makewhole.compute.decode.protobuf.descriptors import message_at
from makewhole.compute.decode.schema_texts import SCHEMA_HEADER, SchemaText
from makewhole.compute.keys import KeyProblem

FIELD = descriptor_pb2.FieldDescriptorProto
OPTIONAL, REPEATED = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
WELL_KNOWN = {".google.protobuf.Timestamp": "timestamp", ".google.protobuf.StringValue": "wrappers"}
WELL_KNOWN |= {".google.protobuf.Int64Value": "wrappers", ".google.protobuf.Duration": "duration"}


def new_file(**types: list[tuple[Any, ...]]) -> Any:
    """Return a proto3 file with messages of these fields: (name, type, label, how it is there)."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    for number, symbol in enumerate(("NEW", "PAID", "LOST")):
        state.value.add(name=symbol, number=number)
    for name, fields in types.items():
        add_message(file, file.message_type.add(name=name), fields)
    return file


def add_message(file: Any, message: Any, fields: list[tuple[Any, ...]]) -> None:
    for number, (name, kind, *more) in enumerate(fields, 1):
        label = more[0] if more else OPTIONAL
        presence = more[1] if len(more) > 1 else ""
        made = message.field.add(name=name, number=number, label=label)
        made.type = kind if isinstance(kind, int) else FIELD.TYPE_ENUM if kind == ".shop.State" else FIELD.TYPE_MESSAGE
        if not isinstance(kind, int):
            made.type_name = kind
        if kind in WELL_KNOWN and (path := f"google/protobuf/{WELL_KNOWN[kind]}.proto") not in file.dependency:
            file.dependency.append(path)
        if presence:
            made.proto3_optional = presence == "optional"
            oneof = f"_{name}" if presence == "optional" else presence
            names = [choice.name for choice in message.oneof_decl]
            if oneof not in names:
                message.oneof_decl.add(name=oneof)
                names.append(oneof)
            made.oneof_index = names.index(oneof)


def text_of(file: Any) -> SchemaText:
    return SchemaText(base64.b64encode(file.SerializeToString()).decode())


def class_of(file: Any, *index: int) -> Any:
    return message_factory.GetMessageClass(message_at(text_of(file), index or (0,)))


class Schemas:
    """The schemas of a topic in memory."""

    def __init__(self, files: dict[str, Any], *, are_named: bool = True, header: str = SCHEMA_HEADER) -> None:
        self.are_named, self.header = are_named, header
        self._texts = {name: text_of(file) for name, file in files.items()}

    def text(self, name: str) -> SchemaText:
        if name not in self._texts:
            raise KeyProblem(f"schema {name} is not in the registry")
        return self._texts[name]

    def newest(self) -> tuple[SchemaText, bytes]:
        name = list(self._texts)[-1]
        return self.text(name), b"" if not self.are_named else b"\0" + int(name[len("ids/") :]).to_bytes(4, "big")


_THOUSANDS = (1_000).__mul__
VALUES: dict[int, st.SearchStrategy[Any]] = {
    FIELD.TYPE_DOUBLE: st.floats(width=64),
    FIELD.TYPE_FLOAT: st.floats(width=32),
    **dict.fromkeys((FIELD.TYPE_INT64, FIELD.TYPE_SINT64, FIELD.TYPE_SFIXED64), st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys((FIELD.TYPE_UINT64, FIELD.TYPE_FIXED64), st.integers(0, 2**64 - 1)),
    **dict.fromkeys((FIELD.TYPE_INT32, FIELD.TYPE_SINT32, FIELD.TYPE_SFIXED32), st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys((FIELD.TYPE_UINT32, FIELD.TYPE_FIXED32), st.integers(0, 2**32 - 1)),
    FIELD.TYPE_BOOL: st.booleans(),
    FIELD.TYPE_STRING: st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=4), st.sampled_from(["", "7", "7.5", "-0.50", "true"])
    ),
    FIELD.TYPE_BYTES: st.binary(max_size=4),
}
KINDS = [*VALUES, ".shop.State", ".shop.Line", *WELL_KNOWN]


@st.composite
def files(draw: Any) -> Any:
    """Draw a file whose first message has a key, and fields of any kind, each there in any way."""
    fields: list[tuple[Any, ...]] = [("id", FIELD.TYPE_INT64)]
    for number in range(draw(st.integers(1, 5))):
        kind, label = draw(st.sampled_from(KINDS)), draw(st.sampled_from([OPTIONAL, OPTIONAL, OPTIONAL, REPEATED]))
        presences = ["", "optional", "choice"] if label == OPTIONAL else [""]
        fields.append((f"f{number}", kind, label, draw(st.sampled_from(presences))))
    fields.sort(key=lambda field: field[-1] == "optional")  # the oneofs of optional fields come last
    line = [("sku", FIELD.TYPE_STRING), ("n", FIELD.TYPE_INT32), ("at", ".google.protobuf.Timestamp")]
    return new_file(Order=fields, Line=[*line, ("rest", ".shop.Line")])


def fill(data: st.DataObject, message: Any, depth: int = 2) -> Any:
    """Fill in drawn values; what is not drawn stays absent."""
    for field in message.DESCRIPTOR.fields:
        for _ in range(data.draw(st.integers(0, 2)) if field.is_repeated else data.draw(st.integers(0, 1))):
            _fill_field(data, message, field, depth)
    return message


def _fill_field(data: st.DataObject, message: Any, field: Any, depth: int) -> None:
    if field.message_type is not None:
        if depth:
            inner = getattr(message, field.name)
            _fill_inner(data, inner.add() if field.is_repeated else inner, depth)
        return
    value = data.draw(VALUES.get(field.type, st.integers(0, 4)))
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def _fill_inner(data: st.DataObject, inner: Any, depth: int) -> None:
    inner.SetInParent()
    if inner.DESCRIPTOR.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        inner.seconds = data.draw(st.one_of(st.integers(-(10**12), 10**12), st.integers(0, 2 * 10**9)))
        inner.nanos = data.draw(
            st.one_of(st.integers(0, 999_999).map(lambda n: n * 1_000), st.integers(0, 999_999_999))
        )
    else:
        fill(data, inner, depth - 1)
