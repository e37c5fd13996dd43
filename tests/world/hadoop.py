"""Start servers of Hadoop on this machine, each a process of its own with a folder and settings of its own.

Their classes are those of Hadoop's `hadoop-client-minicluster`, which go with the Hadoop that pyspark carries.
"""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from bench.cluster.spark_cluster import Server, spark_home
from makewhole.stack.maven_jars import JarFolder, java

_HADOOP_VERSION = "3.4.2"
# What minicluster leaves to others: BouncyCastle, with which YARN's resource manager makes the certificate of its
# proxy, and JAXB for web pages and WebHDFS, which Java 17 has no more.
_HADOOP_JARS = JarFolder(
    name=f"hadoop-minicluster-{_HADOOP_VERSION}",
    title="Hadoop's jars",
    artifacts=(
        ("org.apache.hadoop", "hadoop-client-minicluster", _HADOOP_VERSION),
        ("org.bouncycastle", "bcprov-jdk18on", "1.78.1"),
        ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
        ("org.bouncycastle", "bcutil-jdk18on", "1.78.1"),
        ("javax.xml.bind", "jaxb-api", "2.3.1"),
        ("javax.activation", "javax.activation-api", "1.2.0"),
    ),
    hashes=Path(__file__).with_name("hadoop_jars.sha256"),
    has_dependencies=False,
)

Settings = Mapping[str, str]
"""Properties of Hadoop by name."""


def hadoop_server(folder: Path, main: str, file: str, settings: Settings) -> Server:
    """Start the server of a class, with its settings in the `file` of its own folder."""
    conf = folder / "conf"
    write_settings(conf / file, {**settings, "hadoop.tmp.dir": str(folder / "tmp")})
    return Server(folder, hadoop_command(conf, main))


def hadoop_command(conf: Path, main: str, *arguments: str) -> list[str]:
    """Return the command that runs a class of Hadoop with the settings of a folder."""
    command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # Hadoop's web pages are made by proxies of classes, which Java 17 forbids otherwise.
    command += ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Dorg.apache.logging.log4j.level=INFO"]
    return [*command, "-cp", _class_path(conf), main, *arguments]


def write_settings(file: Path, settings: Settings) -> None:
    """Write a file of settings (`hdfs-site.xml`, `yarn-site.xml`)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{properties}</configuration>\n")


def _class_path(conf: Path) -> str:
    return ":".join([str(conf), str(_HADOOP_JARS.provide() / "*"), str(spark_home() / "jars" / "*")])
