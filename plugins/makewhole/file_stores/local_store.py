"""Keep files in a folder of this machine, or of a file system that all machines mount."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NoReturn

from makewhole.file_stores.store import FileEntry, FileStamp, answering, as_changed, hidden_name

_MILLISECOND = 1_000_000


@dataclass(frozen=True)
class LocalStore:
    """The files of a folder (`FileStore`)."""

    root: str
    has_exclusive_names = True
    stamps_differ_after_seconds = 2.0

    def stamp(self, file: FileEntry) -> FileStamp:
        """Return its number and when anything of it was changed last, which cannot be set, as its time can."""
        try:
            status = self._full(file.path).stat()
        except FileNotFoundError:
            return FileStamp(text="gone", written_at=datetime.now(UTC))
        changed = max(status.st_ctime, status.st_mtime)
        text = f"{status.st_ino}:{status.st_ctime_ns}:{status.st_mtime_ns}"
        return FileStamp(text=text, written_at=datetime.fromtimestamp(changed, UTC))

    def list(self, folder: str = "") -> Sequence[FileEntry]:
        top = self._full(folder)
        if not top.exists():
            return []
        with answering(self.root), as_changed(self.root):
            walked = os.walk(top, onerror=_raise)  # else a folder that cannot be read would be an empty one
            found = [self._listed(Path(below, name)) for below, _, names in walked for name in names]
            return sorted(file for file in found if file is not None)

    def find(self, path: str) -> FileEntry | None:
        with answering(self.root):
            return self._listed(self._full(path))

    def open(self, path: str) -> IO[bytes]:
        with answering(self.root):
            return self._full(path).open("rb")

    def broken_part(self, path: str) -> str:  # noqa: ARG002 - a part of a file is never alone
        return ""

    def publish(self, path: str, content: bytes) -> bool:
        with answering(self.root), self._written(path, content) as hidden:
            try:
                os.link(hidden, self._full(path))
            except FileExistsError:
                return False
            _sync(hidden.parent)
            return True

    def replace(self, path: str, content: bytes) -> None:
        with answering(self.root), self._written(path, content) as hidden:
            hidden.replace(self._full(path))
            _sync(hidden.parent)

    def move(self, path: str, to: str, *, is_new: bool) -> bool:
        source, target = self._full(path), self._full(to)
        with answering(self.root):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                if is_new:
                    os.link(source, target)
                    source.unlink(missing_ok=True)
                else:
                    source.replace(target)
            except (FileExistsError, FileNotFoundError):
                return False
            _sync(target.parent)
            return True

    def remove(self, path: str) -> None:
        with answering(self.root):
            self._full(path).unlink(missing_ok=True)

    @contextmanager
    def _written(self, path: str, content: bytes) -> Iterator[Path]:
        """Write a file that no reader looks at, and remove it where it was not given another name."""
        hidden = self._full(hidden_name(path))
        hidden.parent.mkdir(parents=True, exist_ok=True)
        try:
            with hidden.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield hidden
        finally:
            hidden.unlink(missing_ok=True)

    def _full(self, path: str) -> Path:
        return Path(self.root, path)

    def _listed(self, full: Path) -> FileEntry | None:
        """Return a file that is there; it may have gone since its folder was listed."""
        try:
            status = full.stat()
        except FileNotFoundError:
            return None
        return FileEntry(
            path=full.relative_to(self.root).as_posix(),
            size_bytes=status.st_size,
            modified_ms=status.st_mtime_ns // _MILLISECOND,
        )


def _raise(error: OSError) -> NoReturn:
    raise error


def _sync(folder: Path) -> None:
    """Have the names of a folder on the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
