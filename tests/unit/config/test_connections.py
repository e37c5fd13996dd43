"""Test that connections are read as Airflow reads them, and a wrong one is named without showing what it holds."""

import json
import re
import traceback

import pytest
from confluent_kafka import Consumer, KafkaException
from psycopg2.extensions import parse_dsn

from makewhole.config.clients.client_options import KAFKA_OPTIONS, LIBPQ_PARAMETERS, UNUSED_KAFKA_OPTIONS
from makewhole.config.connections import from_airflow_fields, from_environment
from makewhole.model.connection import (
    FolderConnection,
    HdfsConnection,
    IcebergConnection,
    KafkaConnection,
    ObjectStoreConnection,
    PostgresConnection,
)
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit

SECRET = "s3cret"


def test_kafka_comes_from_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_LOCAL_KAFKA",
        '{"conn_type":"kafka","extra":{"bootstrap.servers":"h:9092","socket.keepalive.enable":true}}',
    )
    connection = from_environment("local_kafka")
    assert connection == KafkaConnection(
        id="local_kafka", properties={"bootstrap.servers": "h:9092", "socket.keepalive.enable": "true"}
    )
    assert "h:9092" not in repr(connection)


def test_what_other_programs_keep_in_the_connection_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap.servers": "h:9092", "group.id": "theirs", "isolation.level": "read_uncommitted", "debug": "all"}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": extra}))
    assert from_environment("k") == KafkaConnection(id="k", properties={"bootstrap.servers": "h:9092"})


@pytest.mark.parametrize("name", sorted(KAFKA_OPTIONS | UNUSED_KAFKA_OPTIONS))
def test_listed_options_are_librdkafkas(name: str) -> None:
    try:
        Consumer({"group.id": "g"} | {name: "unfit"})
    except KafkaException as error:
        assert "No such configuration property" not in error.args[0].str()


@pytest.mark.parametrize(
    "name",
    ["plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers", "no.such.option"],
)
def test_options_that_are_not_listed_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    extra = {"bootstrap.servers": "h:9092", "client.id": "c", name: SECRET}
    monkeypatch.setenv("AIRFLOW_CONN_K", json.dumps({"conn_type": "kafka", "extra": extra}))
    with pytest.raises(ConfigurationError) as caught:
        from_environment("k")
    [problem] = caught.value.problems
    assert problem.found == f"has options in its extra that are not handed to a client: {name}"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["py-io-impl", "py-catalog-impl", "s3.retry-strategy-impl", "fs.hdfs.impl", "auth"])
def test_classes_to_import_are_refused_of_a_catalogue(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    extra = {"type": "rest", "uri": "http://h:1", "s3.region": "r", name: "os.system"}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", "extra": extra}))
    with pytest.raises(ConfigurationError) as caught:
        from_environment("lake")
    [problem] = caught.value.problems
    assert problem.found == f"has options in its extra that are not handed to pyiceberg: {name}"


@pytest.mark.parametrize("place", ["h:54 32", "h:5432/x@h", "h:99999", "[h"])
def test_an_address_of_a_catalogue_that_is_none_is_named_without_it(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    uri = f"postgresql+psycopg2://u:{SECRET}/1@{place}/lake" if "@" in place else f"postgresql://u:{SECRET}@{place}/l"
    extra = {"type": "sql", "uri": uri}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", "extra": extra}))
    with pytest.raises(ConfigurationError) as caught:
        from_environment("lake")
    [problem] = caught.value.problems
    assert problem.found == (
        "has a `uri` in its extra that is no address; special characters in it are percent-encoded"
    )
    assert SECRET not in str(caught.value)


def test_a_catalogue_takes_properties_of_hadoop_and_none_that_only_libhdfs_would_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hadoop = {"dfs.nameservices": "lake", "fs.trash.interval": "0", "hadoop.rpc.protection": "privacy"}
    extra = {"type": "sql", "uri": "sqlite:///c.db", **hadoop}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", "extra": extra}))
    connection = from_environment("lake")
    assert isinstance(connection, IcebergConnection)
    assert hadoop.items() <= connection.properties.items()
    with_ticket = {**extra, "hdfs.kerberos_ticket": SECRET}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", "extra": with_ticket}))
    with pytest.raises(ConfigurationError, match=r"not handed to pyiceberg: hdfs\.kerberos_ticket"):
        from_environment("lake")


def test_kafka_comes_from_a_uri_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_K", "kafka://?__extra__=%7B%22bootstrap.servers%22%3A%22h%3A1%22%7D")
    assert from_environment("k") == KafkaConnection(id="k", properties={"bootstrap.servers": "h:1"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"conn_type":"postgres","host":"h","port":5432,"login":"me","password":"p@:/ %x","schema":"local"}',
            {"host": "h", "port": "5432", "user": "me", "password": "p@:/ %x", "dbname": "local"},
        ),
        ("postgres://me:p%40x@h:5432/local?sslmode=require",
         {"host": "h", "port": "5432", "user": "me", "password": "p@x", "dbname": "local", "sslmode": "require"}),
        ('{"conn_type":"postgres","host":"/run/my sockets","schema":"d"}', {"host": "/run/my sockets", "dbname": "d"}),
        ('{"conn_type":"postgres","host":"::1","port":"5433","schema":"d","extra":"{\\"connect_timeout\\": 5}"}',
         {"host": "::1", "port": "5433", "dbname": "d", "connect_timeout": "5"}),
    ],
)  # fmt: skip
def test_postgres_becomes_a_uri_that_libpq_reads_back(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: dict[str, str]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", text)
    connection = from_environment("db")
    assert isinstance(connection, PostgresConnection)
    assert parse_dsn(connection.dsn) == expected


def test_the_fields_of_an_airflow_connection_give_the_same() -> None:
    connection = from_airflow_fields("db", "postgres", "h", 5432, "me", "pw", "local", '{"sslmode": "disable"}')
    assert connection == PostgresConnection(id="db", dsn="postgresql://me:pw@h:5432/local?sslmode=disable")
    assert from_airflow_fields("k", "kafka", extra={"bootstrap.servers": "h:1"}) == KafkaConnection(
        id="k", properties={"bootstrap.servers": "h:1"}
    )


def test_every_parameter_of_libpq_that_is_accepted_is_one_that_libpq_knows() -> None:
    """`parse_dsn` is libpq's own parser: it refuses an option that it does not know."""
    extra = dict.fromkeys(LIBPQ_PARAMETERS, "1")
    connection = from_airflow_fields("db", "postgres", "h", schema="d", extra=extra)
    assert isinstance(connection, PostgresConnection)
    assert parse_dsn(connection.dsn) == {"host": "h", "dbname": "d", **extra}


def test_a_key_of_an_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL loads the engine, a library, by its name."""
    extra = {"sslkey": "pkcs11:oncall"}
    fields = {"conn_type": "postgres", "host": "db", "schema": "shop", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_DB", json.dumps(fields))

    with pytest.raises(ConfigurationError, match="has an sslkey that names an engine of OpenSSL, which is code"):
        from_environment("db")


def test_time_limits_and_keepalives_of_libpq_are_accepted() -> None:
    extra = {"tcp_user_timeout": 30_000, "keepalives_idle": 30, "keepalives_count": 3, "connect_timeout": 5}
    connection = from_airflow_fields("db", "postgres", "h", schema="d", extra=extra)
    assert isinstance(connection, PostgresConnection)
    assert parse_dsn(connection.dsn).items() >= {name: str(value) for name, value in extra.items()}.items()


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_NONE", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        from_environment("none")
    assert str(caught.value).startswith(
        "environment: AIRFLOW_CONN_NONE: is not set. Add a connection none to Airflow (`airflow connections add`), or "
        "set it to {"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"conn_type":"postgres","password":"s3cret",', "begins like JSON and is none"),
        ("s3cret", "is neither JSON nor a URI"),
        ("postgres://u:s3cret@h:port/db", "is not a URI"),
        ("mysql://u:s3cret@h/db", "has a conn_type that makewhole does not read"),
        ('{"password":"s3cret"}', "has no conn_type"),
        ('{"conn_type":"postgres","password":"s3cret"}', "has no host and no schema"),
        ('{"conn_type":"postgres","host":"h","schema":"d","port":"s3cret"}',
         "has a port that is not a number from 1 to 65535"),
        ('{"conn_type":"postgres","host":"h","schema":"d","extra":{"iam":"s3cret"}}',
         "has keys in its extra that are not used: iam"),
        ('{"conn_type":"postgres","extra":"s3cret"}', "has an extra that is not a JSON object"),
        ('{"conn_type":"kafka","extra":{"sasl.password":"s3cret"}}', "has no bootstrap.servers in its extra"),
        ('{"conn_type":"kafka","extra":{"bootstrap.servers":"h","x":["s3cret"]}}',
         "has a value in its extra that is no text, number or boolean: x"),
        ('{"conn_type":"kafka","pasword":"s3cret"}', "has unknown keys: pasword"),
    ],
)  # fmt: skip
def test_a_wrong_connection_is_named_and_its_secret_is_not(
    monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", text)
    with pytest.raises(ConfigurationError) as caught:
        from_environment("db")
    [problem] = caught.value.problems
    assert (problem.file, problem.path, problem.found) == ("environment", "AIRFLOW_CONN_DB", what)
    assert problem.remedy
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(text, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"conn_type":"fs","extra":{"path":"/lake"}}', FolderConnection(id="lake", path="/lake")),
        ("hdfs://namenode:8020", HdfsConnection(id="lake", address="namenode:8020", properties={})),
        (
            '{"conn_type":"hdfs","host":"hdfs://service","extra":{"dfs.client.use.datanode.hostname":true}}',
            HdfsConnection(id="lake", address="service", properties={"dfs.client.use.datanode.hostname": "true"}),
        ),
        (
            '{"conn_type":"aws","login":"me","password":"s3cret","extra":{"region_name":"here"}}',
            ObjectStoreConnection(id="lake", access_key="me", secret_key=SECRET, settings={"region": "here"}),
        ),
    ],
)
def test_files_lie_in_a_folder_on_hdfs_or_on_s3(monkeypatch: pytest.MonkeyPatch, text: str, expected: object) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)
    connection = from_environment("lake")
    assert connection == expected
    assert SECRET not in repr(connection)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"conn_type":"hdfs","host":"n","login":"me"}', "has a login or a password, which HDFS does not ask for"),
        ('{"conn_type":"hdfs"}', "has no host, or one that is none"),
        ('{"conn_type":"hdfs","host":"n","port":"x"}', "has a port that is not a number from 1 to 65535"),
        ('{"conn_type":"fs","extra":{"path":"lake"}}', "has no absolute path in its extra, or more than that"),
        ('{"conn_type":"fs"}', "has no absolute path in its extra, or more than that"),
        ('{"conn_type":"aws","login":"me"}', "has a login or a password, and not both"),
    ],
)
def test_a_wrong_connection_to_files_is_named(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", text)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        from_environment("lake")
