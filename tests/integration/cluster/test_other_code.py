"""Test that executors with another makewhole than the driver, or with none, judge nothing."""

import sys
import tarfile
from pathlib import Path

import pytest

from bench.cluster.environment_archive import NAME
from bench.cluster.spark_cluster import SparkCluster
from tests.integration.cluster.application import Submitter
from tests.integration.cluster.conftest import ClusterShop

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


def changed(archive: Path, folder: Path, module: str, addition: str | None) -> Path:
    """Return another archive, in which a module has one line more, or (None) is not there."""
    place, made = folder / NAME, folder / "changed.tar.gz"
    with tarfile.open(archive) as given:
        given.extractall(place, filter="fully_trusted")
    [path] = place.rglob(f"site-packages/{module}")
    if addition is None:
        path.unlink()
    else:
        path.write_text(path.read_text() + addition)
    with tarfile.open(made, "w:gz") as written:
        written.add(place, arcname=".")
    return made


@pytest.mark.parametrize(
    ("module", "addition", "message"),
    [
        (
            "makewhole/compute/keys.py",
            "\n# changed\n",
            "have another makewhole than the driver, or other versions of its libraries. Make the archive",
        ),
        (
            "makewhole_spark/carrier.py",
            None,
            "the Python workers have no makewhole, or an older one. Make the archive of",
        ),
    ],
)
def test_executors_with_other_code_judge_nothing(
    shop: ClusterShop,
    cluster: SparkCluster,
    archive: Path,
    tmp_path: Path,
    module: str,
    addition: str | None,
    message: str,
) -> None:
    other = changed(archive, tmp_path, module, addition)
    submitter = Submitter.to_cluster(tmp_path / "cluster", cluster.master, other)

    application = submitter.submit(shop.open(), "snapshot", "snapshot")

    assert application.process.wait(120) == 64, (sys.platform, application.output)
    assert message in application.output
    assert shop.journal_sql("select count(*) from makewhole.snapshot") == [(0,)]
