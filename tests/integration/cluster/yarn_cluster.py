"""Start YARN on this machine: a resource manager and two node managers, each with a folder and an address of its own.

Their classes are those of Hadoop's `hadoop-client-minicluster`, which go with the Hadoop that pyspark carries. Each is
a process of its own, as it is on a cluster.
"""

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import psutil

from bench.cluster.spark_cluster import LOOPBACK, Server, spark_home, until
from makewhole.stack.maven_jars import JarFolder, java
from makewhole.stack.ports import free_ports

_HADOOP_VERSION = "3.4.2"
# What minicluster leaves to others: BouncyCastle, with which the resource manager makes the certificate of its proxy,
# and JAXB for YARN's web pages, which Java 17 has no more.
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
_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_START_SECONDS = 60.0
_EXECUTOR_CONTAINER = "container_*_0000[0-9][02-9]"  # the first of an application is its master's

Settings = Mapping[str, str]


class YarnCluster:
    """A resource manager, and two nodes. `stop` ends them and what runs on them.

    A node has the memory of one driver and one executor: of two executors each gets one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ports = dict(zip(_ADDRESSES, free_ports(len(_ADDRESSES)), strict=True))
        self._settings = {f"yarn.resourcemanager.{name}": f"{LOOPBACK}:{port}" for name, port in ports.items()}
        self.client_settings = folder / "client"
        _write_settings(self.client_settings, self._settings)
        self._servers = [self._manager(folder / "manager")]
        self._servers += [self._node(folder / f"node-{number}", f"127.0.1.{number + 1}") for number in range(2)]
        try:
            until(self._is_whole, _START_SECONDS, self._logs)
        except AssertionError:
            self.stop()
            raise

    def _manager(self, folder: Path) -> Server:
        own = {
            "yarn.resourcemanager.scheduler.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
            ),
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        }
        return _server(folder, _MANAGER, self._settings | own)

    def _node(self, folder: Path, address: str) -> Server:
        """Start a node. What a container was started from stays, to be looked at."""
        own = {
            "yarn.nodemanager.hostname": address,
            "yarn.nodemanager.localizer.address": f"{address}:0",
            "yarn.nodemanager.webapp.address": f"{address}:0",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.nodemanager.resource.memory-mb": "3584",
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.delete.debug-delay-sec": "3600",
        }
        return _server(folder, _NODE, self._settings | own)

    def _is_whole(self) -> bool:
        return self._servers[0].log.count(" registered with capability: ") == 2

    def _logs(self) -> str:
        return "\n".join(one.log for one in self._servers)

    def applications(self) -> set[str]:
        """Return the ids of all applications that ran."""
        return set().union(*self.applications_by_node())

    def applications_by_node(self) -> list[set[str]]:
        """Return, for each node, the ids of the applications that had executors there."""
        nodes = sorted(self.folder.glob("node-*"))
        return [{path.parent.name for path in node.glob(f"logs/*/{_EXECUTOR_CONTAINER}")} for node in nodes]

    def processes(self) -> list[psutil.Process]:
        """Return all processes of the cluster."""
        return [process for server in self._servers for process in server.processes()]

    def stop(self) -> None:
        """End everything."""
        for server in reversed(self._servers):
            server.stop()


def _server(folder: Path, main: str, settings: Settings) -> Server:
    conf = folder / "conf"
    _write_settings(conf, {**settings, "hadoop.tmp.dir": str(folder / "tmp")})
    command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # YARN's web pages are made by proxies of classes, which Java 17 forbids otherwise.
    command += ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Dorg.apache.logging.log4j.level=INFO"]
    return Server(folder, [*command, "-cp", _class_path(conf), main])


def _class_path(conf: Path) -> str:
    return ":".join([str(conf), str(_HADOOP_JARS.provide() / "*"), str(spark_home() / "jars" / "*")])


def _write_settings(folder: Path, settings: Settings) -> None:
    """Write a `yarn-site.xml`, which is all that Hadoop's clients and servers read here."""
    folder.mkdir(parents=True)
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
