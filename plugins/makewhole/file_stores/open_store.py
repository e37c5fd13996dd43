"""Open the files of a connection below a path."""

from urllib.parse import urlsplit

from makewhole.file_stores.local_store import LocalStore
from makewhole.file_stores.s3_store import S3Store
from makewhole.file_stores.store import FileStore
from makewhole.file_system import hdfs_client, s3_client
from makewhole.model.connection import Connection, FolderConnection, HdfsConnection, ObjectStoreConnection
from makewhole.model.errors import RefusedError

FileConnection = FolderConnection | HdfsConnection | ObjectStoreConnection
"""The connections that lead to files."""
FILE_CONNECTIONS = (FolderConnection, HdfsConnection, ObjectStoreConnection)


def file_store(connection: Connection, path: str) -> FileStore:
    """Return the files below a path: of a folder the path below it, of HDFS an absolute path, of S3 `s3://bucket/prefix`
    or `/bucket/prefix`.

    Raises:
        RefusedError: the connection leads to no files, or the path has no bucket.
    """
    clean = path.rstrip("/")
    if isinstance(connection, FolderConnection):
        return LocalStore(f"{connection.path.rstrip('/')}/{clean.lstrip('/')}")
    if isinstance(connection, HdfsConnection):
        client = hdfs_client(connection)
        from makewhole.file_stores.hdfs_store import HdfsStore  # its library is there: it has made the client

        return HdfsStore(client, connection.url, f"/{clean.lstrip('/')}")
    if isinstance(connection, ObjectStoreConnection):
        return S3Store(s3_client(connection), bucket_and_prefix(path))
    raise RefusedError(
        f"connection {connection.id} leads to no files; name one of type fs (a folder), hdfs or aws (S3)"
    )


def bucket_and_prefix(path: str) -> str:
    """Return `bucket/prefix` of a path on S3.

    Raises:
        RefusedError: it names no bucket.
    """
    parts = urlsplit(path)
    location = f"{parts.netloc}{parts.path}".strip("/")
    if not location:
        raise RefusedError(f"{path} names no bucket; write s3://<bucket>/<prefix>")
    return location
