"""Write to HDFS so that the owner alone may read it."""

from typing import Any

from hdfs_native import WriteOptions
from hdfs_native.fsspec import HdfsFileSystem

from makewhole.private_files import FILE_MODE, FOLDER_MODE


class PrivateHdfs(HdfsFileSystem):
    """The file system of HDFS, whose new files are 0600 and new folders 0700; what is there stays as it is."""

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Make a folder, and those above it."""
        super().mkdir(path, create_parents, **{**kwargs, "permission": FOLDER_MODE})

    def _open(
        self,
        path: str,
        mode: Any = "rb",
        overwrite: Any = True,
        replication: int | None = None,
        block_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        if mode != "wb":
            return super()._open(path, mode, overwrite, replication, block_size, **kwargs)
        options = WriteOptions(
            overwrite=overwrite, replication=replication, block_size=block_size, permission=FILE_MODE
        )
        return self.client.create(self._strip_protocol(path), write_options=options)
