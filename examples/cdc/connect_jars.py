"""Provide the jars of Kafka Connect, of Debezium's two connectors and of Iceberg's sink, as Connect wants them."""

from pathlib import Path

from makewhole.stack.kafka_jars import KAFKA_VERSION
from makewhole.stack.maven_jars import JarFolder

DEBEZIUM_VERSION = "3.2.0.Final"
ICEBERG_VERSION = "1.12.0"
_HADOOP_VERSION = "3.4.2"
_HASHES = Path(__file__).with_name("jars")
# The worker has these, and a connector that brings its own does not load: "BlackbirdModule not a subtype".
_OF_THE_WORKER = ("jackson-core-", "jackson-databind-", "jackson-annotations-", "slf4j-api-")

RUNTIME = JarFolder(
    name=f"kafka-connect-{KAFKA_VERSION}",
    title="Kafka Connect's jars",
    artifacts=(("org.apache.kafka", "connect-runtime", KAFKA_VERSION),),
    hashes=_HASHES / "runtime.sha256",
)
LOGGING = JarFolder(  # without it Connect logs nothing at all
    name="slf4j-simple-1.7.36",
    title="the logger's jars",
    artifacts=(("org.slf4j", "slf4j-simple", "1.7.36"),),
    hashes=_HASHES / "logging.sha256",
    has_dependencies=False,
)
SOURCE = JarFolder(
    name=f"debezium-postgres-{DEBEZIUM_VERSION}",
    title="the jars of Debezium's PostgreSQL connector",
    artifacts=(("io.debezium", "debezium-connector-postgres", DEBEZIUM_VERSION),),
    hashes=_HASHES / "source.sha256",
    left_out=_OF_THE_WORKER,
)
SINK = JarFolder(
    name=f"debezium-jdbc-{DEBEZIUM_VERSION}",
    title="the jars of Debezium's JDBC sink",
    artifacts=(("io.debezium", "debezium-connector-jdbc", DEBEZIUM_VERSION),),
    hashes=_HASHES / "sink.sha256",
    left_out=_OF_THE_WORKER,
)
LAKE_SINK = JarFolder(
    name=f"iceberg-kafka-connect-{ICEBERG_VERSION}",
    title="the jars of Iceberg's sink",
    artifacts=(
        ("org.apache.iceberg", "iceberg-kafka-connect", ICEBERG_VERSION),
        ("org.apache.iceberg", "iceberg-parquet", ICEBERG_VERSION),
        ("org.apache.iceberg", "iceberg-kafka-connect-transforms", ICEBERG_VERSION),
        ("org.apache.hadoop", "hadoop-client-api", _HADOOP_VERSION),
        ("org.apache.hadoop", "hadoop-client-runtime", _HADOOP_VERSION),
        ("org.postgresql", "postgresql", "42.7.7"),
    ),
    hashes=_HASHES / "iceberg.sha256",
    left_out=(*_OF_THE_WORKER, "snappy-java-1.1.10.4"),  # of two versions that are resolved the newer stays
)


def class_path() -> str:
    """Return the class path of the worker; fill the cache first when it is empty."""
    return ":".join(f"{folder.provide()}/*" for folder in (RUNTIME, LOGGING))


def link_plugins(folder: Path) -> None:
    """Make a folder with one entry for each connector: Connect takes each folder in it for a plugin of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for jars in (SOURCE, SINK, LAKE_SINK):
        link = folder / jars.name
        link.unlink(missing_ok=True)
        link.symlink_to(jars.provide(), target_is_directory=True)
