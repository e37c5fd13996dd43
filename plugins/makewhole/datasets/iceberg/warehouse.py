"""Reach the files of a warehouse: in folders and on S3 by pyiceberg's own ways, on HDFS by the client of all else here.

Pyiceberg reaches HDFS by libhdfs, which no wheel carries and which needs a JVM in the process. It imports the classes
that some properties name, and lays those of a table, and what a REST catalogue answers about itself or a table, over
those of the connection. Whoever may set properties of a table must not thereby choose code that runs here.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pyarrow import fs
from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import EMPTY_DICT

from makewhole.config.clients.client_options import HADOOP_GROUPS
from makewhole.file_stores.broken_parts import broken_block
from makewhole.file_system import hdfs_arrow_file_system
from makewhole.model.errors import RefusedError

IO_PROPERTY = "py-io-impl"
_ENDS = ("-impl", ".impl")
_LOCATIONS = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL


class WarehouseIO(PyArrowFileIO):
    """Reads and writes the files of tables."""

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> fs.FileSystem:
        if scheme != "hdfs" or not netloc:
            raise RefusedError(
                "the files of the table are on HDFS at an address without a NameNode; write locations as "
                "`hdfs://host:port/path`"
            )
        own = {name: value for name, value in self.properties.items() if name.startswith(HADOOP_GROUPS)}
        return hdfs_arrow_file_system(netloc, own)

    def new_input(self, location: str) -> PyArrowFile:
        """Return a file to be read; the error of one that is not there names it."""
        own = super().new_input(location)
        return _NamedFile(location, own._path, own._filesystem, own._buffer_size)


class _NamedFile(PyArrowFile):
    def open(self, seekable: bool = True) -> InputStream:
        try:
            return super().open(seekable)
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.location) from error


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


def broken_part(io: FileIO, location: str) -> str:
    """Return the part of a file that is there and cannot be read, on HDFS; empty: it is elsewhere, or it can be read.

    Raises:
        FileNotFoundError: the file is not there.
        OSError, RuntimeError: the NameNode does not answer.
    """
    if not isinstance(io, PyArrowFileIO):
        return ""
    scheme, netloc, path = io.parse_location(location, io.properties)
    if scheme != "hdfs":
        return ""
    handler: Any = io.fs_by_scheme(scheme, netloc)
    return broken_block(handler.handler.fs.client, path)


def _relative(path: str, root: str) -> str:
    return path.rstrip("/").removeprefix(root.rstrip("/")).lstrip("/")


def with_own_classes(catalog: Catalog) -> Catalog:
    """Return a catalogue that reaches files by makewhole's class, whatever its server or a table says."""
    load = catalog._load_file_io

    def load_own(properties: Mapping[str, Any] = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load({**_without_classes(properties), IO_PROPERTY: IO_NAME}, location)

    catalog.properties = {**_without_classes(catalog.properties), IO_PROPERTY: IO_NAME}
    catalog._load_file_io = load_own  # type: ignore[method-assign]
    return catalog


def _without_classes(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if not name.endswith(_ENDS)}


def require_own_locations(table: Table) -> None:
    """Check that a table leaves it to pyiceberg where new files stand.

    Raises:
        RefusedError: it names a class that decides it.
    """
    if _LOCATIONS in table.metadata.properties:
        raise RefusedError(
            f"{'.'.join(table.name())} has the property {_LOCATIONS}, which names a class that decides where new files "
            "stand; makewhole runs no code that a table names, and nothing was written. Take the property away, or "
            "repair the table by its own writer"
        )
