"""Name Kafka's own jars."""

from pathlib import Path

from makewhole.stack.maven_jars import JarFolder

KAFKA_VERSION = "4.2.1"
KAFKA_JARS = JarFolder(
    name=f"kafka-{KAFKA_VERSION}",
    title="Kafka's jars",
    artifacts=(("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),),
    hashes=Path(__file__).with_name("kafka_jars.sha256"),
)


def kafka_libs() -> Path:
    """Return the folder with Kafka's jars; fill the cache first when it is empty (raises as `JarFolder.provide`)."""
    return KAFKA_JARS.provide()
