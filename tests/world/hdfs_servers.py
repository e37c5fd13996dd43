"""Start HDFS on this machine: a real NameNode and a real DataNode, on loopback, with their files in a folder."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import hdfs_native

from bench.cluster.spark_cluster import LOOPBACK, Server, until
from makewhole.model.closing import ClosingContext
from makewhole.stack.ports import free_ports
from tests.world.hadoop import Settings, hadoop_command, hadoop_server, write_settings

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_START_SECONDS = 60.0
_WRITE_AND_DIE = """
import os, signal, sys
import hdfs_native
writer = hdfs_native.Client(sys.argv[1]).create(sys.argv[2], hdfs_native.WriteOptions(overwrite=True, block_size=1024))
writer.write(sys.stdin.buffer.read())
os.kill(os.getpid(), signal.SIGKILL)
"""


class HdfsServers(ClosingContext):
    """A NameNode with one DataNode, replication 1. A context manager; they are ended by their pids.

    `settings`: properties of Hadoop instead of those of tests.
    """

    def __init__(self, folder: Path, settings: Settings = MappingProxyType({})) -> None:
        self.port, web, *data = free_ports(5)
        name_folder, data_folder = folder / "name", folder / "data"
        self._blocks, self._conf = data_folder / "blocks", name_folder / "conf"
        shared = {
            "fs.defaultFS": self.url,
            "dfs.replication": "1",
            "dfs.namenode.rpc-address": f"{LOOPBACK}:{self.port}",
            "dfs.namenode.http-address": f"{LOOPBACK}:{web}",
            "dfs.namenode.name.dir": str(name_folder / "meta"),
            "dfs.namenode.fs-limits.min-block-size": "1024",
            "dfs.permissions.enabled": "false",
            **settings,
        }
        own = {
            "dfs.datanode.data.dir": str(data_folder / "blocks"),
            "dfs.datanode.address": f"{LOOPBACK}:{data[0]}",
            "dfs.datanode.http.address": f"{LOOPBACK}:{data[1]}",
            "dfs.datanode.ipc.address": f"{LOOPBACK}:{data[2]}",
            "dfs.datanode.hostname": LOOPBACK,
        }
        _format(name_folder, shared)
        self._servers: list[Server] = []
        try:
            self._servers.append(hadoop_server(name_folder, _NAME_NODE, "hdfs-site.xml", shared))
            self._servers.append(hadoop_server(data_folder, _DATA_NODE, "hdfs-site.xml", shared | own))
            until(self._is_whole, _START_SECONDS, lambda: "\n".join(server.log for server in self._servers))
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the file system, as clients name it."""
        return f"hdfs://{LOOPBACK}:{self.port}"

    @property
    def connection(self) -> str:
        """The connection, as Airflow's environment has it."""
        return json.dumps({"conn_type": "hdfs", "host": LOOPBACK, "port": self.port})

    @property
    def service(self) -> Settings:
        """The properties of a name service `lakes` of two NameNodes, the first of which is away."""
        of_service = "dfs.namenode.rpc-address.lakes"
        return {
            "dfs.nameservices": "lakes",
            "dfs.ha.namenodes.lakes": "away,here",
            f"{of_service}.away": f"{LOOPBACK}:1",
            f"{of_service}.here": f"{LOOPBACK}:{self.port}",
        }

    def client(self) -> hdfs_native.Client:
        """Return a client of its own."""
        return hdfs_native.Client(self.url)

    def lose_block(self, content: bytes) -> None:
        """Remove the block with this content, the only one of its file, from the DataNode's disk."""
        [block] = [path for path in self._blocks.rglob("blk_*") if path.read_bytes() == content]
        block.unlink()

    def stop_data_node(self) -> None:
        """End the DataNode, and leave the NameNode."""
        self._servers[-1].stop()

    def set_safe_mode(self, *, is_on: bool) -> None:
        """Have the NameNode refuse writes, as it does after each start, or take them again."""
        _run(hadoop_command(self._conf, _ADMIN, "-safemode", "enter" if is_on else "leave"), self._conf)

    def leave_open(self, path: str, content: bytes) -> None:
        """Have a process write the beginning of a file under its own name, in blocks of 1,024 bytes, and kill it before
        it has closed it. Its length is that of its whole blocks."""
        command = [sys.executable, "-c", _WRITE_AND_DIE, self.url, path]
        done = subprocess.run(command, input=content, capture_output=True, timeout=_START_SECONDS)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]

    def recover(self, path: str) -> None:
        """Have the NameNode close a file that a dead process left open, as it does by itself an hour later."""
        client = self.client()
        until(lambda: client.recover_lease(path), _START_SECONDS, lambda: f"{path} is still open")

    def close(self) -> None:
        """End both."""
        for server in reversed(self._servers):
            server.stop()

    def _is_whole(self) -> bool:
        """Return whether a file can be written: the DataNode has registered, and safe mode is over."""
        try:
            with self.client().create("/.started", hdfs_native.WriteOptions(overwrite=True)) as file:
                file.write(b"1")
        except (OSError, RuntimeError):
            return False
        return True


def _format(folder: Path, settings: Settings) -> None:
    conf = folder / "conf"
    write_settings(conf / "hdfs-site.xml", settings)
    _run(hadoop_command(conf, _NAME_NODE, "-format", "-nonInteractive"), folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_START_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
