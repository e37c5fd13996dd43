"""Test the names of storages: folders, and S3 without any secret."""

from pathlib import Path

import pytest
from pyarrow import fs

from makewhole.file_system import (
    arrow_file_system,
    connection_of,
    fsspec_file_system,
    is_object_store,
    path_below,
    with_ending,
)
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("/data", "/data/a/b"),
        ("/data/", "/data/a/b"),
        ("file:///data?x", "file:///data?x/a/b"),
        ("s3://bucket", "s3://bucket/a/b"),
        ("s3://store@bucket/prefix/?region=r&scheme=http", "s3://store@bucket/prefix/a/b?region=r&scheme=http"),
    ],
)
def test_a_path_below_a_root_stands_before_the_options(root: str, expected: str) -> None:
    assert path_below(root, "a/b") == expected


def test_an_ending_stands_before_the_options() -> None:
    assert with_ending("s3://bucket/plan?region=r", "-1.parquet") == "s3://bucket/plan-1.parquet?region=r"
    assert with_ending("/data/plan", "-1.parquet") == "/data/plan-1.parquet"


def test_the_user_of_a_name_is_the_id_of_a_connection() -> None:
    assert connection_of("s3://store@bucket/prefix") == "store"
    assert connection_of("s3://bucket/prefix") is None
    assert connection_of("hdfs://store@host/prefix") == "store"
    assert connection_of("hdfs://host/prefix") is None
    assert connection_of("/data") is None
    assert [is_object_store(path) for path in ("s3://b", "/s3://b", "file:///b")] == [True, False, False]


def test_a_client_has_the_settings_of_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_STORE",
        '{"conn_type": "aws", "login": "AK", "password": "SK", '
        '"extra": {"region_name": "eu-west-1", "endpoint_url": "http://127.0.0.1:9"}}',
    )
    known = fs.S3FileSystem(
        access_key="AK", secret_key="SK", region="eu-west-1", scheme="http", endpoint_override="127.0.0.1:9"
    )

    system, path = arrow_file_system("s3://store@Bucket/a/prefix/")

    assert (system, path) == (known, "Bucket/a/prefix")
    assert arrow_file_system("s3://store@Bucket/other")[0] is system
    assert fsspec_file_system("s3://store@Bucket/other")[1] == "Bucket/other"


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (
            "s3://key:s3cret@bucket/prefix",
            "environment: MAKEWHOLE_STORAGE: has a secret in it. Write s3://<connection id>@<bucket>/<prefix>, and the "
            "keys into a connection of the type aws",
        ),
        (
            "s3://bucket/prefix?secret_key=s3cret&region=r",
            "environment: MAKEWHOLE_STORAGE: has unknown options: secret_key. Allowed: endpoint_override, region, "
            "scheme",
        ),
        ("s3:///prefix", "environment: MAKEWHOLE_STORAGE: names no bucket. Write s3://<bucket>/<prefix>"),
        *(
            (
                name,
                "environment: MAKEWHOLE_STORAGE: has a secret or options in it, or no NameNode. Write "
                "hdfs://<connection id>@<host>:<port>/<path>, and the options into a connection of the type hdfs",
            )
            for name in ("hdfs://me:s3cret@host/prefix", "hdfs:///prefix", "hdfs://host/prefix?user=me")
        ),
    ],
)
def test_a_name_with_a_secret_or_a_mistake_is_refused(monkeypatch: pytest.MonkeyPatch, root: str, message: str) -> None:
    monkeypatch.setenv("MAKEWHOLE_STORAGE", root)

    with pytest.raises(ConfigurationError) as caught:
        Storage.from_environment()

    assert str(caught.value) == message


def test_a_folder_is_the_same_by_path_and_by_uri(tmp_path: Path) -> None:
    assert arrow_file_system(str(tmp_path))[1] == arrow_file_system(tmp_path.as_uri())[1] == str(tmp_path)
