"""Test schemas that a registry has as `.proto` text: compiled as Google's compiler does it, or named."""

import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from makewhole.compute.decode.protobuf import proto_text
from makewhole.compute.decode.protobuf.descriptors import DescriptorProblem, message_at
from makewhole.compute.decode.protobuf.proto_text import TextProblem, compile_text
from makewhole.compute.decode.schema_texts import SchemaText
from tests.unit.compute.decode.protobuf.messages import new_file

pytestmark = pytest.mark.unit

TEXT = 'syntax = "proto3"; message Order { int64 id = 1; }'


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    proto_text._outcome.cache_clear()
    message_at.cache_clear()


def installed(monkeypatch: pytest.MonkeyPatch, *, is_there: bool = True) -> None:
    spec = ModuleSpec("grpc_tools", None, is_package=True)
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append("/compiler")
    monkeypatch.setattr(proto_text, "find_spec", lambda _: spec if is_there else None)


def compiler(monkeypatch: pytest.MonkeyPatch, *, says: str = "") -> list[dict[str, str]]:
    """Have a compiler that answers with a message `Order`, or refuses; return the files that it was given each time."""
    given: list[dict[str, str]] = []

    def run(command: list[str], **_: Any) -> Any:
        folder = Path(command[3].removeprefix("-I"))
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        given.append({str(path.relative_to(folder)): path.read_text() for path in files})
        made = descriptor_pb2.FileDescriptorSet(file=[new_file(Order=[("id", 3)])])
        Path(command[5].partition("=")[2]).write_bytes(made.SerializeToString())
        return subprocess.CompletedProcess(command, 1 if says else 0, stderr=f"{says}\nmore".encode())

    installed(monkeypatch)
    monkeypatch.setattr(subprocess, "run", run)
    return given


def test_without_a_compiler_it_says_which_package_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, is_there=False)
    with pytest.raises(DescriptorProblem, match="install the package grpcio-tools, or register the serialized form"):
        message_at(SchemaText(TEXT), (0,))


def test_a_text_is_compiled_once_with_what_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    given = compiler(monkeypatch)
    money = SchemaText("message Money {}", (("deep/unit.proto", SchemaText("enum Unit {}")),))
    text = SchemaText(TEXT, (("shop/money.proto", money),))

    first, second = compile_text(text), compile_text(text)
    first.name = "another"

    assert (second.message_type[0].name, second.name) == ("Order", new_file().name)
    assert given == [
        {"deep/unit.proto": "enum Unit {}", "schema_of_a_topic.proto": TEXT, "shop/money.proto": "message Money {}"}
    ]


def test_what_the_compiler_refuses_is_asked_once_and_said_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    given = compiler(monkeypatch, says='schema.proto:1:3: Expected ";".')
    for _ in range(3):
        with pytest.raises(DescriptorProblem, match=r'it is \.proto text that its compiler refuses: .*Expected ";"\.$'):
            message_at(SchemaText(TEXT), (0,))
    assert len(given) == 1


@pytest.mark.parametrize("name", ["../up.proto", "/etc/x.proto", "a/../../b.proto", "schema_of_a_topic.proto"])
def test_an_import_is_written_beside_the_text_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given = compiler(monkeypatch)
    with pytest.raises(TextProblem, match="is not the name of a file beside it"):
        compile_text(SchemaText(TEXT, ((name, SchemaText("")),)))
    assert given == []


def test_googles_compiler_gives_what_the_serialized_form_is() -> None:
    pytest.importorskip("grpc_tools")
    money = SchemaText('syntax = "proto3"; package shop; message Money { int64 cents = 1; }')
    text = SchemaText(
        'syntax = "proto3"; package shop; import "money.proto"; import "google/protobuf/timestamp.proto"; '
        "message Other { string a = 1; } message Order { Money total = 1; google.protobuf.Timestamp at = 2; "
        "map<string, int64> lines = 3; optional string remark = 4; oneof by { int32 id = 5; string name = 6; } }",
        (("money.proto", money),),
    )
    message = message_at(text, (1,))
    assert message.full_name == "shop.Order"
    assert [field.name for field in message.fields] == ["total", "at", "lines", "remark", "id", "name"]
    assert message.fields_by_name["total"].message_type.fields[0].name == "cents"
    assert message.fields_by_name["remark"].has_presence
