"""Open the file system of a storage: one place that knows folders, `s3://…` and what else pyarrow and fsspec know.

    /var/lib/makewhole                      a folder
    s3://bucket/prefix                      S3; the SDK's own chain finds the credentials
    s3://storage@bucket/prefix              S3; credentials, region and endpoint are those of connection `storage`
    s3://bucket/prefix?region=eu-west-1     S3; `region`, `scheme` and `endpoint_override` may be said like this
    hdfs://host:port/path                   HDFS, by the address of its NameNode
    hdfs://storage@host:port/path           HDFS; the properties of its client are those of connection `storage`

No secret is ever part of such a name: it is sent with tasks, kept in the journal and shown to people.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

import fsspec
import fsspec.core
import pyarrow as pa
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem
from pyarrow import fs

from makewhole.config.connections import hdfs, object_store
from makewhole.config.extras import installed_for
from makewhole.model.connection import HdfsConnection, ObjectStoreConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.private_files import make_private, make_private_folder

if TYPE_CHECKING:
    from hdfs_native import Client as HdfsClient
    from hdfs_native.fsspec import HdfsFileSystem

_OBJECT_STORE = "s3"
_HDFS = "hdfs"
# A client asks a NameNode that does not answer again, for three seconds and not for three minutes.
_HDFS_PROPERTIES = {"dfs.client.failover.max.attempts": "2"}
_OPTIONS = ("endpoint_override", "region", "scheme")


def path_below(root: str, path: str) -> str:
    """Return the name of a path below a root."""
    place, mark, options = _split(root)
    return f"{place.rstrip('/')}/{path}{mark}{options}"


def with_ending(uri: str, ending: str) -> str:
    """Return a name with more at the end of its path, before the options that S3 may have there."""
    place, mark, options = _split(uri)
    return f"{place}{ending}{mark}{options}"


def _split(uri: str) -> tuple[str, str, str]:
    return uri.partition("?") if is_object_store(uri) else (uri, "", "")


def is_object_store(uri: str) -> bool:
    """Return whether a name is one of S3: there, folders do not exist, and a file is there once it was closed."""
    return uri.startswith(f"{_OBJECT_STORE}://")


def _is_hdfs(uri: str) -> bool:
    return uri.startswith(f"{_HDFS}://")


def connection_of(uri: str) -> str | None:
    """Return the id of the connection that a name has for its credentials, if any."""
    return (urlsplit(uri).username or None) if is_object_store(uri) or _is_hdfs(uri) else None


def arrow_file_system(uri: str, *, is_shared: bool = False) -> tuple[fs.FileSystem, str]:
    """Return pyarrow's file system of a folder or URI, and the path in it. On HDFS what is written is for its owner
    alone, unless it `is_shared`.

    Raises:
        ConfigurationError: a URI of S3 has a secret or an unknown option in it, or its connection is not known.
    """
    if is_object_store(uri):
        parts = check_name(uri)
        return _s3(parts.username, parts.query), f"{_bucket(parts)}{parts.path.rstrip('/')}"
    if _is_hdfs(uri):
        system, path = _hdfs_file_system(uri, is_shared=is_shared)
        return _of_arrow(system), path
    if "://" in uri:
        return fs.FileSystem.from_uri(uri)
    return fs.LocalFileSystem(), str(Path(uri).absolute())


def fsspec_file_system(uri: str) -> tuple[AbstractFileSystem, str]:
    """Return fsspec's file system of a folder or URI, and the path in it.

    Raises:
        ConfigurationError: as `arrow_file_system`.
    """
    if is_object_store(uri):
        system, path = arrow_file_system(uri)
        return ArrowFSWrapper(system), path
    if _is_hdfs(uri):
        return _hdfs_file_system(uri)
    system_and_path: tuple[AbstractFileSystem, str] = fsspec.core.url_to_fs(uri)
    return system_and_path


@contextmanager
def open_to_read(uri: str) -> Iterator[IO[bytes]]:
    """Open a file to be read from its beginning to its end.

    Raises:
        FileNotFoundError: it is not there.
    """
    if is_object_store(uri) or _is_hdfs(uri):
        system, path = fsspec_file_system(uri)
        opened = system.open(path, "rb")
    else:
        opened = fsspec.open(uri, "rb")
    with opened as file:
        yield cast(IO[bytes], file)


def make_folder(system: AbstractFileSystem, path: str) -> None:
    """Make a folder that its owner alone may read, and those above it that are not there."""
    if isinstance(system, LocalFileSystem):
        make_private_folder(path)
    else:
        system.makedirs(path, exist_ok=True)


def prepare(system: AbstractFileSystem, path: str) -> None:
    """Make a file on this machine, empty, that its owner alone may read; other systems make it so themselves."""
    if isinstance(system, LocalFileSystem):
        make_private(path)


def open_to_write(system: AbstractFileSystem, path: str) -> IO[bytes]:
    """Open a new file that its owner alone may read."""
    prepare(system, path)
    return cast(IO[bytes], system.open(path, "wb"))


def check_name(uri: str) -> SplitResult:
    """Return the parts of a name; those of S3 are checked.

    Raises:
        ConfigurationError: a URI of S3 has a secret or an unknown option in it, or names no bucket.
    """
    parts = urlsplit(uri)
    if _is_hdfs(uri) and (parts.password is not None or parts.query or not _bucket(parts)):
        _fail(
            "has a secret or options in it, or no NameNode",
            "Write hdfs://<connection id>@<host>:<port>/<path>, and the options into a connection of the type hdfs",
        )
    if not is_object_store(uri):
        return parts
    unknown = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} - set(_OPTIONS))
    if parts.password is not None:
        _fail(
            "has a secret in it",
            "Write s3://<connection id>@<bucket>/<prefix>, and the keys into a connection of the type aws",
        )
    if unknown:
        _fail(f"has unknown options: {', '.join(unknown)}", f"Allowed: {', '.join(_OPTIONS)}")
    if not _bucket(parts):
        _fail("names no bucket", "Write s3://<bucket>/<prefix>")
    return parts


def _bucket(parts: SplitResult) -> str:
    return parts.netloc.rsplit("@", 1)[-1]


def _fail(found: str, remedy: str) -> None:
    raise ConfigurationError([Problem(file="environment", path="MAKEWHOLE_STORAGE", found=found, remedy=remedy)])


def _hdfs_file_system(uri: str, *, is_shared: bool = False) -> "tuple[HdfsFileSystem, str]":
    parts = check_name(uri)
    own = {} if parts.username is None else dict(hdfs(parts.username).properties)
    kind = None if is_shared else _private_hdfs(parts)
    return _hdfs_system(parts, _HDFS_PROPERTIES | own, kind), parts.path.rstrip("/") or "/"


def _hdfs_system(
    parts: SplitResult, properties: Mapping[str, str], kind: "type[HdfsFileSystem] | None" = None
) -> "HdfsFileSystem":
    with installed_for(f"HDFS at {parts.hostname}"):
        from hdfs_native.fsspec import HdfsFileSystem

        from makewhole.kept_hdfs import kept
        from makewhole.limited_hdfs import limited

    def make() -> "HdfsFileSystem":
        system = (kind or HdfsFileSystem)(parts.hostname, parts.port, skip_instance_cache=True, **properties)
        system.client = limited(system.client)
        return system

    return kept((kind, parts.hostname, parts.port, frozenset(properties.items())), make)


def _private_hdfs(parts: SplitResult) -> "type[HdfsFileSystem]":
    """Return the file system of HDFS whose new files and folders are for their owner alone."""
    with installed_for(f"HDFS at {parts.hostname}"):
        from makewhole.private_hdfs import PrivateHdfs
    return PrivateHdfs


def hdfs_arrow_file_system(address: str, properties: Mapping[str, str]) -> fs.FileSystem:
    """Return pyarrow's file system of HDFS at an address (`host:port`, or a name service), with properties of its
    client."""
    parts = urlsplit(f"{_HDFS}://{address}")
    return _of_arrow(_hdfs_system(parts, _HDFS_PROPERTIES | dict(properties)))


class _OpeningAtOnce(fs.FSSpecHandler):
    """Opens files without asking whether they are there before: to that question fsspec answers no, too, when a
    NameNode does not answer, and what cannot be read is not absent."""

    def open_input_stream(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(cast(Any, self.fs).open(path, mode="rb"), mode="r")

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(cast(Any, self.fs).open(path, mode="rb"), mode="r")


def _of_arrow(system: "HdfsFileSystem") -> fs.FileSystem:
    return fs.PyFileSystem(cast(Any, _OpeningAtOnce)(system))


def hdfs_client(connection: HdfsConnection) -> "HdfsClient":
    """Return a client of HDFS, one for the same settings."""
    with installed_for(f"connection {connection.id} to HDFS"):
        from hdfs_native import Client as HdfsClient

        from makewhole.kept_hdfs import kept
        from makewhole.limited_hdfs import limited
    properties = _HDFS_PROPERTIES | dict(connection.properties)
    asked_for = (connection.url, frozenset(properties.items()))
    return kept(asked_for, lambda: limited(HdfsClient(connection.url, properties)))


def s3_client(connection: ObjectStoreConnection) -> fs.S3FileSystem:
    """Return a client of S3, one for the same settings."""
    return _client(frozenset(_settings(connection).items()))


def _s3(connection_id: str | None, query: str) -> fs.S3FileSystem:
    known = {} if connection_id is None else _settings(object_store(connection_id))
    return _client(frozenset({**known, **dict(parse_qsl(query))}.items()))


@lru_cache(maxsize=32)
def _client(settings: frozenset[tuple[str, str]]) -> fs.S3FileSystem:
    """Return a client of S3, one for the same settings: it keeps its connections to the server open."""
    given: dict[str, Any] = dict(settings)
    return fs.S3FileSystem(**given)


def _settings(connection: ObjectStoreConnection) -> Mapping[str, str]:
    """Return the arguments of pyarrow's client."""
    settings = dict(connection.settings)
    endpoint = settings.pop("endpoint_url", None)
    if endpoint is not None:
        parts = urlsplit(endpoint)
        settings |= {"scheme": parts.scheme or "https", "endpoint_override": parts.netloc or parts.path}
    if connection.access_key is not None:
        settings |= {"access_key": connection.access_key, "secret_key": str(connection.secret_key)}
    return settings
