"""Keep files on HDFS: the NameNode renames a file, and does so for one of many."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TypeVar, cast

import hdfs_native

from makewhole.file_stores.broken_parts import broken_block
from makewhole.file_stores.hdfs_rights import give_rights, make_folders
from makewhole.file_stores.store import (
    FileEntry,
    FileStamp,
    answering,
    as_changed,
    hidden_name,
    other_rights,
    stamp_of,
)

Renamed = TypeVar("Renamed")


@dataclass(frozen=True)
class HdfsStore:
    """The files below a folder of HDFS (`FileStore`)."""

    client: hdfs_native.Client = field(repr=False)
    url: str
    folder: str
    has_exclusive_names = True
    stamps_differ_after_seconds = 60.0

    def stamp(self, file: FileEntry) -> FileStamp:
        return stamp_of(file)

    @property
    def root(self) -> str:
        return f"{self.url}{self.folder}"

    def list(self, folder: str = "") -> Sequence[FileEntry]:
        top = self._full(folder).rstrip("/") or "/"
        with answering(self.root):
            try:
                self.client.get_file_info(top)
            except FileNotFoundError:
                return []
            with as_changed(self.root):
                statuses = list(self.client.list_status(top, recursive=True))
            return sorted(self._listed(status) for status in statuses if not status.isdir)

    def find(self, path: str) -> FileEntry | None:
        with answering(self.root):
            try:
                return self._listed(self.client.get_file_info(self._full(path)))
            except FileNotFoundError:
                return None

    def open(self, path: str) -> IO[bytes]:
        with answering(self.root):
            return cast(IO[bytes], self.client.read(self._full(path)))

    def broken_part(self, path: str) -> str:
        return broken_block(self.client, self._full(path))

    def publish(self, path: str, content: bytes) -> bool:
        def rename(hidden: str) -> bool:
            try:
                self.client.rename(hidden, self._full(path), overwrite=False)
            except FileExistsError:
                return False
            return True

        return self._write(path, content, rename)

    def replace(self, path: str, content: bytes) -> None:
        def rename(hidden: str) -> None:
            with suppress(FileNotFoundError):  # it is new
                give_rights(self.client, hidden, self._full(path), is_new=False)
            self.client.rename(hidden, self._full(path), overwrite=True)

        self._write(path, content, rename)

    def move(self, path: str, to: str, *, is_new: bool) -> bool:
        target = self._full(to)
        with answering(self.root):
            make_folders(self.client, target.rpartition("/")[0])
            if not is_new:
                self._require_rights(path, to)
            try:
                self.client.rename(self._full(path), target, overwrite=not is_new)
            except (FileExistsError, FileNotFoundError):
                return False
            return True

    def can_move_to(self, path: str) -> bool:  # noqa: ARG002 - all names are in one system
        return True

    def give_rights(self, path: str, *, of: str, is_new: bool) -> bool:
        with answering(self.root):
            return give_rights(self.client, self._full(path), self._full(of), is_new=is_new)

    def _require_rights(self, path: str, to: str) -> None:
        with suppress(FileNotFoundError):  # which of the two is not there is found when it is moved
            if not self.give_rights(path, of=to, is_new=False):
                raise other_rights(self._full(to))

    def remove(self, path: str) -> None:
        with answering(self.root), suppress(FileNotFoundError):
            self.client.delete(self._full(path))

    def _write(self, path: str, content: bytes, rename: Callable[[str], Renamed]) -> Renamed:
        """Write a file that no reader looks at, close it, and give it its name; remove it where it got none."""
        hidden = self._full(hidden_name(path))
        with answering(self.root):
            try:
                with self.client.create(hidden, hdfs_native.WriteOptions(create_parent=True)) as file:
                    file.write(content)
                return rename(hidden)
            finally:
                with suppress(OSError, RuntimeError):
                    self.client.delete(hidden)

    def _full(self, path: str) -> str:
        return f"{self.folder.rstrip('/')}/{path}"

    def _listed(self, status: hdfs_native.FileStatus) -> FileEntry:
        return FileEntry(
            path=status.path.removeprefix(self.folder.rstrip("/")).lstrip("/"),
            size_bytes=status.length,
            modified_ms=status.modification_time,
        )
