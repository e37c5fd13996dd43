"""Provide the jars of the peers: resolved by the Ivy of pyspark, verified by hash, cached.

They are Spark's own Kafka connector and PostgreSQL's JDBC driver. By hand, not by `spark.jars.packages`: the connector
asks for a token provider that the registries do not have, an older one works. Tests resolve theirs by `resolved_jars`.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from makewhole.stack.kafka_jars import cache_root, java

CONNECTOR_VERSION = "4.1.3"
Artifact = tuple[str, str, str]
"""Organisation, name, version."""
_ARTIFACTS: tuple[Artifact, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", CONNECTOR_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
_JDBC_DRIVER: Artifact = ("org.postgresql", "postgresql", "42.7.4")
_HASHES = Path(__file__).with_name("jars.sha256")
_TIMEOUT_SECONDS = 300


def connector_jars() -> list[Path]:
    """Return the four jars; fill the cache first when it is empty.

    Raises:
        RuntimeError: they could not be resolved, or are not the expected ones.
    """
    return resolved_jars(f"spark-kafka-connector-{CONNECTOR_VERSION}", _ARTIFACTS)


def jdbc_driver() -> Path:
    """Return the jar of PostgreSQL's JDBC driver; raises as `connector_jars` does."""
    (driver,) = resolved_jars(f"postgresql-jdbc-{_JDBC_DRIVER[2]}", (_JDBC_DRIVER,))
    return driver


def resolved_jars(name: str, artifacts: Sequence[Artifact], hashes: Path = _HASHES) -> list[Path]:
    """Return the jars of some artifacts, without their dependencies, from the folder `name` of the cache.

    `hashes` is a file with the SHA-256 of each.

    Raises:
        RuntimeError: they could not be resolved, or are not the expected ones.
    """
    folder = cache_root() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="resolving-") as work:
            resolved = Path(work) / "jars"
            resolved.mkdir()
            for organisation, artifact, version in artifacts:
                _resolve(Path(work), resolved, (organisation, artifact, version))
            verify(resolved, hashes)
            resolved.rename(folder)
    return sorted(folder.glob("*.jar"))


def _resolve(work: Path, target: Path, artifact: Artifact) -> None:
    """Resolve one artifact without its dependencies; codecs, logging and Hadoop are Spark's own."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    found = work / artifact[1]
    command = [java(), "-jar", str(ivy), "-cache", str(work / "ivy"), "-dependency", *artifact, "-types", "jar"]
    command += ["-confs", "master", "-retrieve", f"{found}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    wanted = found / f"{artifact[1]}-{artifact[2]}.jar"
    if not wanted.is_file():
        tail = "\n".join(done.stdout.splitlines()[-10:])
        raise RuntimeError(f"{wanted.name} could not be resolved; check the network and try again\n{tail}")
    shutil.move(wanted, target / wanted.name)


def verify(folder: Path, hashes: Path = _HASHES) -> None:
    """Compare the jars in a folder with the committed hashes."""
    expected = expected_hashes(hashes)
    for jar in folder.glob("*.jar"):
        if hashlib.sha256(jar.read_bytes()).hexdigest() != expected.get(jar.name):
            raise RuntimeError(f"{jar.name} in {folder} is not the expected one; remove the folder and try again")


def expected_hashes(hashes: Path = _HASHES) -> Mapping[str, str]:
    """Return file name to SHA-256."""
    lines = (line.split() for line in hashes.read_text(encoding="ascii").splitlines())
    return {name: digest for digest, name in lines}
