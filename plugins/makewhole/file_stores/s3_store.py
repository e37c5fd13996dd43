"""Keep files on S3: a file is there once it is written as a whole, and a name has what was written last."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, cast

from pyarrow import fs

from makewhole.file_stores.store import FileEntry, FileStamp, answering, stamp_of

_MILLISECOND = 1_000_000


@dataclass(frozen=True)
class S3Store:
    """The files below a prefix of a bucket (`FileStore`).

    The client knows no condition for a write (`If-None-Match`): of two that publish one name at once the later one
    stays. Names have to carry what is written.
    """

    client: fs.S3FileSystem = field(repr=False)
    folder: str
    has_exclusive_names = False
    stamps_differ_after_seconds = 60.0

    def stamp(self, file: FileEntry) -> FileStamp:
        return stamp_of(file)

    @property
    def root(self) -> str:
        return f"s3://{self.folder}"

    def list(self, folder: str = "") -> Sequence[FileEntry]:
        with answering(self.root):
            selector = fs.FileSelector(self._full(folder).rstrip("/"), allow_not_found=True, recursive=True)
            infos = self.client.get_file_info(selector)
            return sorted(self._listed(info) for info in infos if info.type is fs.FileType.File)

    def find(self, path: str) -> FileEntry | None:
        with answering(self.root):
            [info] = self.client.get_file_info([self._full(path)])
            return self._listed(info) if info.type is fs.FileType.File else None

    def open(self, path: str) -> IO[bytes]:
        with answering(self.root):
            try:
                return cast(IO[bytes], self.client.open_input_file(self._full(path)))
            except FileNotFoundError:
                self.client.get_file_info([self._full(path)])  # some refuse here alone a user whom they do not know
                raise

    def broken_part(self, path: str) -> str:  # noqa: ARG002 - a part of a file is never alone
        return ""

    def publish(self, path: str, content: bytes) -> bool:
        if self.find(path) is not None:
            return False
        self.replace(path, content)
        return True

    def replace(self, path: str, content: bytes) -> None:
        with answering(self.root), self.client.open_output_stream(self._full(path), compression=None) as stream:
            stream.write(content)

    def move(self, path: str, to: str, *, is_new: bool) -> bool:
        """Do as the protocol says, by a copy: S3 gives no file another name."""
        if is_new and self.find(to) is not None:
            return False
        try:
            with self.open(path) as file:
                content = file.read()
        except FileNotFoundError:
            return False
        self.replace(to, content)
        self.remove(path)
        return True

    def can_move_to(self, path: str) -> bool:  # noqa: ARG002 - all names are in one system
        return True

    def give_rights(self, path: str, *, of: str, is_new: bool) -> bool:  # noqa: ARG002 - rights are of the bucket
        return True

    def remove(self, path: str) -> None:
        with answering(self.root), suppress(FileNotFoundError):
            self.client.delete_file(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self.folder.rstrip('/')}/{path}"

    def _listed(self, info: fs.FileInfo) -> FileEntry:
        return FileEntry(
            path=info.path.removeprefix(f"{self.folder.rstrip('/')}/"),
            size_bytes=int(info.size or 0),
            modified_ms=int(info.mtime_ns or 0) // _MILLISECOND,
        )
