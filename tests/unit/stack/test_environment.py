"""Test what the service finds in its environment."""

import json
import stat
from pathlib import Path

import pytest

from makewhole.config.connections import from_environment
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import CorruptionError, PermanentError
from makewhole.signing.key_files import ensure_key_files
from makewhole.stack.environment import connection_postgres, environment, signing_folder
from makewhole.stack.kafka_jars import KAFKA_JARS, KAFKA_VERSION
from makewhole.stack.maven_jars import cache_root
from makewhole.stack.postgres_server import ExistingPostgres
from makewhole.stack.settings import home_folder, load, load_or_create, project_root

pytestmark = pytest.mark.unit


def test_a_stack_that_was_never_started_says_how_to_start_it(tmp_path: Path) -> None:
    with pytest.raises(PermanentError) as error:
        environment(tmp_path)

    assert str(error.value) == f"there is no local stack in {tmp_path}; start one with `makewhole up`"


def test_secrets_stay_the_same_and_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    first = load_or_create(tmp_path)

    assert load_or_create(tmp_path) == first
    assert stat.S_IMODE((tmp_path / "settings.json").stat().st_mode) == 0o600
    assert first.jwt_secret not in repr(first)


def test_the_service_signs_with_the_key_of_its_stack_and_people_verify_with_the_public_one(tmp_path: Path) -> None:
    load_or_create(tmp_path)
    ensure_key_files(signing_folder(tmp_path))

    variables = environment(tmp_path)

    assert variables["MAKEWHOLE_SIGNING_KEY"] == f"file:{tmp_path}/signing/private.pem"
    assert variables["MAKEWHOLE_SIGNING_PUBLIC_KEYS"] == f"file:{tmp_path}/signing/public.pem"
    assert stat.S_IMODE((tmp_path / "signing" / "private.pem").stat().st_mode) == 0o600


def test_the_lake_is_a_catalogue_in_the_database_of_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_or_create(tmp_path)
    monkeypatch.setenv("MAKEWHOLE_POSTGRES_DSN", "postgresql://me:p%40ss@db:5432/postgres")
    monkeypatch.setenv("AIRFLOW_CONN_LOCAL_LAKE", environment(tmp_path)["AIRFLOW_CONN_LOCAL_LAKE"])

    lake = from_environment("local_lake")

    assert isinstance(lake, IcebergConnection)
    known = {name: lake.properties[name] for name in ("type", "uri", "warehouse")}
    assert (lake.catalog, known) == (
        "lake",
        {
            "type": "sql",
            "uri": "postgresql+psycopg2://me:p%40ss@db:5432/local",
            "warehouse": f"file://{tmp_path}/lake",
        },
    )


def test_damaged_settings_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"api_port": 1')

    with pytest.raises(CorruptionError, match=r"settings\.json is damaged; end the stack with `makewhole down`"):
        load(tmp_path)


def test_two_homes_share_nothing(tmp_path: Path) -> None:
    first, other = load_or_create(tmp_path / "one"), load_or_create(tmp_path / "other")

    assert first.api_port != other.api_port
    assert first.passwords != other.passwords


def test_home_is_in_the_checkout_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKEWHOLE_HOME", raising=False)
    assert home_folder() == project_root() / ".makewhole"

    monkeypatch.setenv("MAKEWHOLE_HOME", "/somewhere/else")
    assert home_folder() == Path("/somewhere/else")


def test_a_password_with_signs_reaches_airflow_unquoted() -> None:
    connection = json.loads(connection_postgres("postgresql://me:p%40ss%2Fword@127.0.0.1:5432/local"))

    assert connection == {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": 5432,
        "login": "me",
        "password": "p@ss/word",
        "schema": "local",
    }


def test_an_existing_server_gives_uris_with_its_options() -> None:
    server = ExistingPostgres("host=db.example port=5433 user=me password=p@ss dbname=first sslmode=require")

    assert server.dsn("second") == "postgresql://me:p%40ss@db.example:5433/second?sslmode=require"


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.delenv("MAKEWHOLE_CACHE", raising=False)
    assert cache_root() == Path("/caches/makewhole")

    monkeypatch.setenv("MAKEWHOLE_CACHE", "/mine")
    assert cache_root() == Path("/mine")


def test_the_committed_hashes_are_those_of_one_kafka() -> None:
    hashes = KAFKA_JARS.expected_hashes()

    assert len(hashes) == 45
    assert f"kafka_2.13-{KAFKA_VERSION}.jar" in hashes
    assert all(len(digest) == 64 for digest in hashes.values())


def test_a_jar_that_is_not_the_expected_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "intruder-1.0.jar").write_bytes(b"not Kafka")

    with pytest.raises(CorruptionError, match=r"intruder-1\.0\.jar"):
        KAFKA_JARS.verify(tmp_path)
