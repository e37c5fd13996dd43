"""Reach the files of a warehouse: in folders and on S3 by pyiceberg's own ways, on HDFS by the client of all else here.

Pyiceberg reaches HDFS by libhdfs, which no wheel carries and which needs a JVM in the process.
"""

from collections.abc import Iterator

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from makewhole.file_system import hdfs_arrow_file_system
from makewhole.model.errors import RefusedError

IO_PROPERTY = "py-io-impl"
_OF_HADOOP = ("dfs.", "fs.", "hadoop.")
"""How properties of Hadoop's clients begin; all others are pyiceberg's."""


class WarehouseIO(PyArrowFileIO):
    """Reads and writes the files of tables."""

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> fs.FileSystem:
        if scheme != "hdfs" or not netloc:
            raise RefusedError(
                "the files of the table are on HDFS at an address without a NameNode; write locations as "
                "`hdfs://host:port/path`"
            )
        own = {name: value for name, value in self.properties.items() if name.startswith(_OF_HADOOP)}
        return hdfs_arrow_file_system(netloc, own)


IO_NAME = f"{WarehouseIO.__module__}.{WarehouseIO.__qualname__}"


def files_below(io: FileIO, location: str) -> Iterator[tuple[str, int]]:
    """Yield the files below a location, with their sizes in bytes, as tables name them.

    Raises:
        RefusedError: the files are reached by a client that lists none.
    """
    if not isinstance(io, PyArrowFileIO):
        raise RefusedError(f"{type(io).__name__} lists no files; take `{IO_PROPERTY}` out of the connection")
    scheme, netloc, path = io.parse_location(location, io.properties)
    system = io.fs_by_scheme(scheme, netloc)
    below = location.rstrip("/")
    for info in system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
        if info.type is fs.FileType.File:
            yield f"{below}/{_relative(info.path, path)}", info.size


def _relative(path: str, root: str) -> str:
    return path.rstrip("/").removeprefix(root.rstrip("/")).lstrip("/")
