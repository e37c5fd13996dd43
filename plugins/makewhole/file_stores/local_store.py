"""Keep files in a folder of this machine, or of a file system that all machines mount."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from errno import EXDEV
from os.path import realpath
from pathlib import Path, PurePath
from typing import IO, NoReturn

from makewhole.file_stores.local_rights import give_rights, missing_folders
from makewhole.file_stores.store import (
    FileEntry,
    FileStamp,
    answering,
    as_changed,
    hidden_name,
    other_rights,
)
from makewhole.model.errors import RefusedError, TransientError

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
            files = [self._listed(full) for full in _files_below(top, Path(self.root).resolve())]
            return sorted(file for file in files if file is not None)

    def find(self, path: str) -> FileEntry | None:
        with answering(self.root):
            return self._listed(self._full(path))

    def open(self, path: str) -> IO[bytes]:
        with answering(self.root):
            full = self._full(path)
            try:
                return full.open("rb")
            except FileNotFoundError as error:
                if not full.is_symlink():
                    raise
                raise TransientError(
                    f"{full} is a link, and {full.readlink()}, to which it leads, is not there: mount what that lies "
                    "on, or remove the link; then try again"
                ) from error

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
            with suppress(FileNotFoundError):  # it is new
                give_rights(str(hidden), str(self._full(path)), is_new=False)
            hidden.replace(self._full(path))
            _sync(hidden.parent)

    def move(self, path: str, to: str, *, is_new: bool) -> bool:
        source, target = self._full(path), self._full(to)
        with answering(self.root):
            self._make_folders(target.parent)
            try:
                if is_new:
                    os.link(source, target)
                    source.unlink(missing_ok=True)
                else:
                    self._require_rights(path, to)
                    source.replace(realpath(target))  # of a link the file that it leads to
            except (FileExistsError, FileNotFoundError):
                return False
            except OSError as error:
                if error.errno != EXDEV:
                    raise
                raise RefusedError(
                    f"{target} lies on another disk than {source}, behind a link or a mount: no file can be moved "
                    "there as a whole. Have the dataset on one disk; then run the window again"
                ) from error
            _sync(target.parent)
            return True

    def can_move_to(self, path: str) -> bool:
        with answering(self.root):
            return _disk(PurePath(realpath(self.root))) == _disk(PurePath(realpath(self._full(path))).parent)

    def give_rights(self, path: str, *, of: str, is_new: bool) -> bool:
        with answering(self.root):
            return give_rights(str(self._full(path)), str(self._full(of)), is_new=is_new)

    def _require_rights(self, path: str, to: str) -> None:
        with suppress(FileNotFoundError):  # which of the two is not there is found when it is moved
            if not self.give_rights(path, of=to, is_new=False):
                raise other_rights(str(self._full(to)))

    def _make_folders(self, folder: Path) -> None:
        """Make the folders of a file that have to be, each with the rights of the one above as far as it can be."""
        made = missing_folders(str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        for full in made:
            give_rights(full, str(PurePath(full).parent), is_new=True)

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
        """Return a file that is there; it may have gone since its folder was listed. A link that leads nowhere is
        there: what it leads to may be a file, or a folder of many."""
        status = _status(full)
        if status is None:
            return None
        return FileEntry(
            path=full.relative_to(self.root).as_posix(),
            size_bytes=status.st_size,
            modified_ms=status.st_mtime_ns // _MILLISECOND,
        )


def _files_below(top: Path, root: Path) -> Iterator[Path]:
    """Yield the files below a folder, those in folders that lie elsewhere and are linked here among them, as readers
    of datasets list them. A link to a folder below the root, or below another one that is linked, is another name of
    one that is listed itself; of several links to one folder the first counts, in whatever order a disk lists them."""
    files: dict[Path, list[Path]] = {}
    links = [top]
    for link in links:  # more are found on the way
        to = link.resolve()
        is_another_name = link != top and (root.is_relative_to(to) or to.is_relative_to(root))
        if is_another_name or to in files:
            continue
        files[to] = []
        for below, folders, names in os.walk(link, onerror=_raise):  # onerror: not readable is not empty
            folders.sort()
            files[to] += (Path(below, name) for name in names)
            links += (folder for name in folders if (folder := Path(below, name)).is_symlink())
    for to, paths in files.items():
        if not any(to.is_relative_to(other) for other in files if other != to):
            yield from paths


def _status(full: Path) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return full.stat()
    with suppress(FileNotFoundError):
        return full.lstat()
    return None


def _raise(error: OSError) -> NoReturn:
    raise error


def _disk(folder: PurePath) -> int:
    """Return the number of the disk on which a folder lies, or will lie once it is made."""
    try:
        return os.stat(folder).st_dev  # noqa: PTH116 - no step of a chunk
    except FileNotFoundError:
        return _disk(folder.parent)


def _sync(folder: Path) -> None:
    """Have the names of a folder on the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
