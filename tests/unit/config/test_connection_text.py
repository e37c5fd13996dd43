"""Test the file of connections: what it may hold, when it counts, and that no message quotes it."""

import json
from pathlib import Path

import pytest

from makewhole.config.connections import from_environment, object_store
from makewhole.model.connection import KafkaConnection, PostgresConnection
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

SECRET = "s3cret-of-the-file"
DATABASE = {"conn_type": "postgres", "host": "h", "login": "u", "password": SECRET, "schema": "d"}
KAFKA = {"conn_type": "kafka", "extra": {"bootstrap.servers": "h:1"}}
_SHAPE = 'Write it as {"<connection id>": {"conn_type": "...", ...}}, for its owner alone to read'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "connections.json"
    monkeypatch.setenv("MAKEWHOLE_CONNECTIONS", str(made))
    for name in ("DB", "LOG", "STORAGE"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}", raising=False)
    return made


def problem_of(connection_id: str) -> tuple[str, str, str, str]:
    with pytest.raises(ConfigurationError) as caught:
        from_environment(connection_id)
    [problem] = caught.value.problems
    assert SECRET not in str(caught.value)
    return problem.file, problem.path, problem.found, problem.remedy


def test_connections_are_read_from_the_file_as_objects_texts_and_uris(file: Path) -> None:
    uri = f"postgres://u:{SECRET}@h/d"
    file.write_text(json.dumps({"db": DATABASE, "log": json.dumps(KAFKA), "other": uri}))

    database = PostgresConnection(id="db", dsn=f"postgresql://u:{SECRET}@h/d")

    assert from_environment("db") == database
    assert from_environment("log") == KafkaConnection(id="log", properties={"bootstrap.servers": "h:1"})
    assert from_environment("other") == PostgresConnection(id="other", dsn=database.dsn)


def test_the_environment_counts_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(json.dumps({"db": DATABASE}))
    monkeypatch.setenv("AIRFLOW_CONN_DB", "postgres://elsewhere/d")

    assert from_environment("db") == PostgresConnection(id="db", dsn="postgresql://elsewhere/d")


def test_a_connection_that_is_nowhere_is_named_with_both_places(file: Path) -> None:
    file.write_text(json.dumps({"db": DATABASE}))

    place, path, what, remedy = problem_of("log")

    assert (place, path, what) == ("environment", "AIRFLOW_CONN_LOG", "is not set")
    assert remedy.endswith("or to Airflow's URI form; or write it into the file of MAKEWHOLE_CONNECTIONS")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read (FileNotFoundError)"),
        (f'{{"db": "{SECRET}"', "cannot be read (JSONDecodeError)"),
        (f'["{SECRET}"]', "is not a JSON object"),
        ("", "cannot be read (JSONDecodeError)"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_its_content_is_not(
    file: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        file.write_text(content)

    assert problem_of("db") == (str(file), "MAKEWHOLE_CONNECTIONS", problem, _SHAPE)


def test_a_connection_of_the_file_with_a_mistake_is_named_by_its_id(file: Path) -> None:
    file.write_text(json.dumps({"db": {**DATABASE, "pasword": SECRET}, "log": [SECRET]}))

    assert problem_of("db")[:3] == (str(file), "db", "has unknown keys: pasword")
    assert problem_of("log")[:3] == (str(file), "log", "is neither a JSON object nor a URI")


def test_a_connection_to_an_object_store_has_keys_or_leaves_them_to_the_sdk(file: Path) -> None:
    extra = {"region_name": "eu-west-1", "endpoint_url": "https://s3.example:9000"}
    store = {"conn_type": "aws", "login": "AK", "password": SECRET, "extra": extra}
    file.write_text(json.dumps({"storage": store, "chain": {"conn_type": "aws"}}))

    storage, chain = object_store("storage"), object_store("chain")

    assert (storage.access_key, storage.secret_key) == ("AK", SECRET)
    assert storage.settings == {"region": "eu-west-1", "endpoint_url": "https://s3.example:9000"}
    assert (chain.access_key, chain.secret_key, chain.settings) == (None, None, {})
    assert SECRET not in repr(storage)


@pytest.mark.parametrize(
    ("store", "what"),
    [
        ({"conn_type": "postgres", "password": SECRET}, "is no connection to an object store"),
        ({"conn_type": "aws", "password": SECRET}, "has a login or a password, and not both"),
        ({"conn_type": "aws", "extra": {"aws_secret_access_key": SECRET}},
         "has keys in its extra that are not used: aws_secret_access_key"),
    ],
)  # fmt: skip
def test_a_wrong_connection_to_an_object_store_is_named_and_its_secret_is_not(
    file: Path, store: dict[str, object], what: str
) -> None:
    file.write_text(json.dumps({"storage": store}))
    with pytest.raises(ConfigurationError) as caught:
        object_store("storage")
    assert caught.value.problems[0].found == what
    assert SECRET not in str(caught.value)
