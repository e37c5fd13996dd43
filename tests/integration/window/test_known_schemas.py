"""Test what is known of schemas: asked of a registry over HTTP, kept as it was read first."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.compute.decode.schema_texts import SchemaText
from makewhole.compute.keys import KeyProblem
from makewhole.lake.storage import Storage
from makewhole.model.connection import RegistryConnection
from makewhole.model.errors import ConfigurationError, RefusedError, TransientError
from makewhole.window.known_schemas import RegistrySchemas
from tests.world.registry_server import RegistryServer, registry_server

pytestmark = pytest.mark.integration

STRING = '"string"'


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def schemas(registry: RegistryServer, folder: Path, kind: str = "AVRO", form: str = "") -> RegistrySchemas:
    """Return what a process knows that has just begun."""
    connection = RegistryConnection(id="r", url=registry.url, login="me", password="s3cret")
    return RegistrySchemas(connection, Storage(root=str(folder)), kind, form, "orders-value")


def test_a_schema_is_asked_for_once_by_a_process(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(7, STRING)
    known = schemas(registry, tmp_path)

    assert [known.text("ids/7") for _ in range(3)] == [SchemaText(STRING)] * 3
    assert registry.asked == ["/schemas/ids/7"]


def test_what_was_read_once_is_known_without_the_registry(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(7, STRING)
    schemas(registry, tmp_path).text("ids/7")

    registry.status = 503
    assert schemas(registry, tmp_path).text("ids/7") == SchemaText(STRING)
    registry.status = None
    registry.answers.clear()
    assert schemas(registry, tmp_path).text("ids/7") == SchemaText(STRING)


def test_a_number_that_means_another_schema_now_is_refused(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(7, STRING)
    schemas(registry, tmp_path).text("ids/7")
    registry.register(7, '"long"')

    with pytest.raises(RefusedError, match="schema ids/7 of connection r is another one now than when it was read"):
        schemas(registry, tmp_path).text("ids/7")


def test_schemas_that_others_refer_to_come_with_them(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(3, '"int"', "a")
    registry.register(
        7,
        STRING,
        references=[{"name": "shop.A", "subject": "a", "version": 1}],
    )

    text = schemas(registry, tmp_path).text("ids/7")

    assert text == SchemaText(STRING, (("shop.A", SchemaText('"int"')),))
    assert schemas(registry, tmp_path).text("ids/7") == text


def test_an_unknown_number_is_the_record_s_problem_and_is_asked_for_once(
    registry: RegistryServer, tmp_path: Path
) -> None:
    known = schemas(registry, tmp_path)

    for _ in range(3):
        with pytest.raises(KeyProblem, match="schema ids/8 is not in the registry"):
            known.text("ids/8")
    assert registry.asked == ["/schemas/ids/8"]


def test_a_schema_of_another_kind_is_the_record_s_problem(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(7, "…", schemaType="PROTOBUF")

    with pytest.raises(KeyProblem, match="schema ids/7 is one of PROTOBUF, and not of AVRO"):
        schemas(registry, tmp_path).text("ids/7")


def test_the_newest_schema_comes_with_its_prefix(registry: RegistryServer, tmp_path: Path) -> None:
    registry.register(7, STRING)
    registry.register(258, '"long"')

    assert schemas(registry, tmp_path).newest() == (SchemaText('"long"'), b"\x00\x00\x00\x01\x02")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_cannot_answer_is_asked_again(registry: RegistryServer, tmp_path: Path, status: int) -> None:
    registry.status = status

    with pytest.raises(TransientError) as caught:
        schemas(registry, tmp_path).text("ids/7")
    assert str(caught.value) == (
        f"the schema registry of connection r did not answer (status {status}); it is asked again"
    )


def test_a_registry_that_is_not_there_is_asked_again(registry: RegistryServer, tmp_path: Path) -> None:
    registry.url = "http://127.0.0.1:9"

    with pytest.raises(TransientError, match=r"did not answer \(ConnectError\)"):
        schemas(registry, tmp_path).text("ids/7")


def test_a_wrong_login_and_a_wrong_path_are_named_without_the_secret(registry: RegistryServer, tmp_path: Path) -> None:
    registry.status = 401
    with pytest.raises(ConfigurationError) as caught:
        schemas(registry, tmp_path).text("ids/7")
    assert str(caught.value) == (
        "connections: r: is refused by the schema registry (status 401). Give it a login and a password that may read "
        "schemas"
    )

    registry.status, registry.answers = None, {"/schemas/ids/7": ["a page"]}
    with pytest.raises(ConfigurationError, match="leads to something that does not answer as a schema registry does"):
        schemas(registry, tmp_path).text("ids/7")
