"""Start HDFS on this machine: a real NameNode and a real DataNode, on loopback, with their files in a folder."""

import json
import subprocess
from pathlib import Path

import hdfs_native

from bench.cluster.spark_cluster import LOOPBACK, Server, until
from makewhole.model.closing import ClosingContext
from makewhole.stack.ports import free_ports
from tests.world.hadoop import Settings, hadoop_command, hadoop_server, write_settings

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_START_SECONDS = 60.0


class HdfsServers(ClosingContext):
    """A NameNode with one DataNode, replication 1. A context manager; they are ended by their pids."""

    def __init__(self, folder: Path) -> None:
        self.port, web, *data = free_ports(5)
        name_folder, data_folder = folder / "name", folder / "data"
        self._blocks = data_folder / "blocks"
        shared = {
            "fs.defaultFS": self.url,
            "dfs.replication": "1",
            "dfs.namenode.rpc-address": f"{LOOPBACK}:{self.port}",
            "dfs.namenode.http-address": f"{LOOPBACK}:{web}",
            "dfs.namenode.name.dir": str(name_folder / "meta"),
            "dfs.namenode.fs-limits.min-block-size": "1024",
            "dfs.permissions.enabled": "false",
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
            until(self._is_whole, _START_SECONDS, lambda: "\n".join(one.log for one in self._servers))
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
    command = hadoop_command(conf, _NAME_NODE, "-format", "-nonInteractive")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_START_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
