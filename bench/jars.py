"""Name the jars of the peers: Spark's own Kafka connector, PostgreSQL's JDBC driver, Spark's Avro, Iceberg's reader.

Without their dependencies, not by `spark.jars.packages`: codecs, logging and Hadoop are Spark's own, and the connector
asks for a token provider that the registries do not have, where an older one works.
"""

from pathlib import Path

from makewhole.stack.maven_jars import JarFolder

CONNECTOR_VERSION = "4.1.3"
_JDBC_VERSION = "42.7.4"
_AVRO_VERSION = "4.1.1"
_ICEBERG_VERSION = "1.12.0"
_HASHES = Path(__file__).with_name("jars.sha256")
_CONNECTOR = JarFolder(
    name=f"spark-kafka-connector-{CONNECTOR_VERSION}",
    title="the jars of Spark's Kafka connector",
    artifacts=(
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", CONNECTOR_VERSION),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.1"),
        ("org.apache.commons", "commons-pool2", "2.12.1"),
    ),
    hashes=_HASHES,
    has_dependencies=False,
)
_JDBC_DRIVER = JarFolder(
    name=f"postgresql-jdbc-{_JDBC_VERSION}",
    title="the jars of PostgreSQL's JDBC driver",
    artifacts=(("org.postgresql", "postgresql", _JDBC_VERSION),),
    hashes=_HASHES,
    has_dependencies=False,
)
_AVRO = JarFolder(
    name=f"spark-avro-{_AVRO_VERSION}",
    title="the jars of Spark's Avro",
    artifacts=(("org.apache.spark", "spark-avro_2.13", _AVRO_VERSION),),
    hashes=_HASHES,
    has_dependencies=False,
)
_ICEBERG = JarFolder(
    name=f"iceberg-spark-{_ICEBERG_VERSION}",
    title="the jars of Iceberg's own reader for Spark",
    artifacts=(("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", _ICEBERG_VERSION),),
    hashes=_HASHES,
    has_dependencies=False,
)


def connector_jars() -> list[Path]:
    """Return the four jars; fill the cache first when it is empty (raises as `JarFolder.provide`)."""
    return sorted(_CONNECTOR.provide().glob("*.jar"))


def jdbc_driver() -> Path:
    """Return the jar of PostgreSQL's JDBC driver; raises as `connector_jars` does."""
    (driver,) = _JDBC_DRIVER.provide().glob("*.jar")
    return driver


def avro_jar() -> Path:
    """Return the jar of Spark's Avro; raises as `connector_jars` does."""
    (jar,) = _AVRO.provide().glob("*.jar")
    return jar


def iceberg_jar() -> Path:
    """Return the jar of Iceberg's reader for Spark; raises as `connector_jars` does."""
    (jar,) = _ICEBERG.provide().glob("*.jar")
    return jar
