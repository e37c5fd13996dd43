"""Check what two connections to files have in common that lead to the same ones: no secret is among it."""

import pytest

from makewhole.config.connections import from_airflow_fields
from makewhole.kinds import server_of

pytestmark = pytest.mark.unit


def test_the_place_of_files_is_known_without_a_secret() -> None:
    extra = {"endpoint_url": "http://s3", "region_name": "here", "aws_session_token": "s3cret"}
    assert server_of(from_airflow_fields("a", "aws", login="me", password="s3cret", extra=extra)) == [
        "http://s3",
        "here",
    ]
    assert server_of(from_airflow_fields("h", "hdfs", host="namenode", port=8020)) == "hdfs://namenode:8020"
    assert server_of(from_airflow_fields("f", "fs", extra={"path": "/lake"})) == "/lake"
