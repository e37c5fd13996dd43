"""Test which connections of Spark are refused before a job is submitted, and which pass."""

from pathlib import Path

import pytest

from makewhole.window.readiness.mistakes import Readiness, Weight
from makewhole.window.readiness.spark import look_at_machine, look_at_spark

pytestmark = pytest.mark.unit

LOCAL: dict[str, object] = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}


def found(fields: dict[str, object] | None) -> list[str]:
    readiness = Readiness()
    look_at_spark(readiness, fields)
    return [problem.found for problem in readiness.of(Weight.WRONG)]


@pytest.mark.parametrize(
    "fields",
    [
        LOCAL,
        {"conn_type": "spark", "host": "local[*]"},
        {"conn_type": "spark", "host": "yarn", "extra": '{"deploy-mode": "client"}'},
        {"conn_type": "spark", "host": "spark://master", "port": 7077},
        {"conn_type": "spark", "host": "master", "port": 7077},  # a URI: its scheme is the type
    ],
)
def test_a_master_that_spark_knows_passes(fields: dict[str, object]) -> None:
    assert found(fields) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (None, "is not there, and without it Spark is submitted to YARN"),
        ({"conn_type": "generic", "host": "local[2]"}, "names the master 'generic://local[2]'"),
        ({"conn_type": "spark"}, "names the master 'spark://'"),
        ({"conn_type": "spark", "host": "mesos://master"}, "names the master 'mesos://master'"),
        (LOCAL | {"extra": {"deploy-mode": "custer"}}, "is 'custer'"),
        (LOCAL | {"extra": '{"deploy-mode": "cluster"}'}, "the master local[2] is this machine alone"),
        (LOCAL | {"host": "yarn", "extra": {"deploy-mode": "cluster"}}, "Airflow's operator refuses that on YARN"),
        (LOCAL | {"host": "spark://m:7077", "extra": {"deploy-mode": "cluster"}}, "run no driver in Python"),
        (LOCAL | {"host": "k8s://https://m:6443"}, "Airflow's provider for Kubernetes is not installed here"),
        (LOCAL | {"extra": {"spark-home": "/opt/spark"}}, "is refused by Airflow's operator"),
    ],
)
def test_what_airflow_or_spark_would_refuse_is_named(fields: dict[str, object] | None, words: str) -> None:
    (problem,) = found(fields)
    assert words in problem


def found_here(fields: dict[str, object] | None) -> list[str]:
    readiness = Readiness()
    look_at_machine(readiness, fields)
    return [problem.found for problem in readiness.of(Weight.WRONG) if "yarn" in problem.found]


def test_yarn_is_refused_where_spark_would_not_find_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    yarn: dict[str, object] = {"conn_type": "spark", "host": "yarn"}
    for variable in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(variable, raising=False)
    assert found_here(yarn) == ["names the master yarn, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set here"]
    assert found_here(LOCAL) == found_here(None) == []

    monkeypatch.setenv("YARN_CONF_DIR", "/no/such/folder")
    (problem,) = found_here(yarn)
    assert "here YARN_CONF_DIR is /no/such/folder, and there is no such folder" in problem
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert found_here(yarn) == []
