"""Start YARN on this machine: a resource manager and two node managers, each with a folder and an address of its own.

Each is a process of its own, as it is on a cluster.
"""

from pathlib import Path

import psutil

from bench.cluster.spark_cluster import LOOPBACK, Server, until
from makewhole.stack.ports import free_ports
from tests.world.hadoop import hadoop_server, write_settings

_FILE = "yarn-site.xml"
_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_START_SECONDS = 60.0
_EXECUTOR_CONTAINER = "container_*_0000[0-9][02-9]"  # the first of an application is its master's


class YarnCluster:
    """A resource manager, and two nodes. `stop` ends them and what runs on them.

    A node has the memory of one driver and one executor: of two executors each gets one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ports = dict(zip(_ADDRESSES, free_ports(len(_ADDRESSES)), strict=True))
        self._settings = {f"yarn.resourcemanager.{name}": f"{LOOPBACK}:{port}" for name, port in ports.items()}
        self.client_settings = folder / "client"
        write_settings(self.client_settings / _FILE, self._settings)
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
        return hadoop_server(folder, _MANAGER, _FILE, self._settings | own)

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
        return hadoop_server(folder, _NODE, _FILE, self._settings | own)

    def _is_whole(self) -> bool:
        return self._servers[0].log.count(" registered with capability: ") == 2

    def _logs(self) -> str:
        return "\n".join(server.log for server in self._servers)

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
