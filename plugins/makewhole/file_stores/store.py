"""Name what is done with the files below a root, whatever keeps them: listed, read, published, replaced."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Protocol
from uuid import uuid4

from makewhole.model.errors import RefusedError, TransientError

_REFUSALS = (
    "ACCESS_DENIED",
    "AWS Error [code 15]",
    "INVALID_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH",
    "AccessControlException",
    "XAdminUserNotFound",
)
"""Texts of the clients of S3 and HDFS where an answer is a refusal; each raises one error for all that goes wrong."""

_READ_BY_ALL = 0o004


@dataclass(frozen=True, kw_only=True, order=True)
class FileEntry:
    """A file as it was when its folder was listed: its path below the root, its size, and when it was last written in
    milliseconds since 1970. One that was written again differs in one of these."""

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """Marks of the content of a file, beside its size and the time in its entry, as far as its system says
    it, and when that was set last."""

    text: str
    written_at: datetime


def stamp_of(file: FileEntry) -> FileStamp:
    """Return the stamp of a file whose system says no more of it than its entry has."""
    return FileStamp(text="", written_at=datetime.fromtimestamp(file.modified_ms / 1000, UTC))


class FileStore(Protocol):
    """The files below a root. Paths are relative to it and use `/`."""

    @property
    def root(self) -> str:
        """The name of the root, for messages."""
        ...

    @property
    def has_exclusive_names(self) -> bool:
        """Whether of several that publish one name at once exactly one succeeds. Where not, a name has to say who
        writes it, and what."""
        ...

    @property
    def stamps_differ_after_seconds(self) -> float:
        """How long after a file was written the stamp of another content is another one, whatever the clocks and their
        ticks."""
        ...

    def stamp(self, file: FileEntry) -> FileStamp:
        """Return the stamp of a file that was listed."""
        ...

    def list(self, folder: str = "") -> Sequence[FileEntry]:
        """Return all files in a folder, by path, those in folders below among them; of no folder there are none.

        Raises:
            TransientError: the system does not answer.
        """
        ...

    def find(self, path: str) -> FileEntry | None:
        """Return a file as it is now; None: there is none."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a file to be read at any place.

        Raises:
            FileNotFoundError: it is not there.
        """
        ...

    def broken_part(self, path: str) -> str:
        """Return the part of a file that is there and cannot be read; empty: the system has no such parts, or all of
        them can be."""
        ...

    def publish(self, path: str, content: bytes) -> bool:
        """Write a file that is visible as a whole, or not at all; return whether it was. False: the name is taken, and
        what is there stays as it is.

        Raises:
            TransientError: the system does not answer; nothing can be seen of the file, or all of it.
        """
        ...

    def replace(self, path: str, content: bytes) -> None:
        """Write a file under a name, whatever is there: a reader sees all of the old one, or all of the new one."""
        ...

    def move(self, path: str, to: str, *, is_new: bool) -> bool:
        """Give a file the name `to`, as a whole; return whether it was. False: it is not there any more, or, where the
        name is to be new, that is taken. One file is moved once, whoever tries again, and however late; on a system
        without exclusive names it may be written again by whoever had begun to. In the place of another file it has
        the rights of that one (`give_rights`), and a folder that is made for it those of the folder above.

        Raises:
            RefusedError: the name is on another disk, or the rights of the file there cannot be given.
            TransientError: the system does not answer; the file has its old name, or its new one.
        """
        ...

    def can_move_to(self, path: str) -> bool:
        """Return whether a file below the root can be given a name, which is not on another disk, behind a link or a
        mount."""
        ...

    def give_rights(self, path: str, *, of: str, is_new: bool) -> bool:
        """Give a file the owner, group, mode and ACL of another one as far as this user may; return whether it is fit
        to take the place of that one, or, `is_new`, to lie beside it: such a file may be this user's, and have another
        group where everyone may read it.

        Raises:
            FileNotFoundError: one of the two is not there.
            TransientError: the system does not answer.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there stays so."""
        ...


def is_fit(unlike: Set[str], mode: int, *, is_new: bool) -> bool:
    """Return whether a file has the rights of another one, of a mode, but for some: all of them in its place; beside
    it (`is_new`) those by which others read it."""
    if not is_new:
        return not unlike
    return unlike <= ({"owner", "group"} if mode & _READ_BY_ALL else {"owner"})


def other_rights(target: str) -> RefusedError:
    """Return the error of a file that cannot be given the rights of the one that it is to replace."""
    return RefusedError(
        f"{target}: a file in its place cannot be given its owner, group, mode and ACL by the user that makewhole runs "
        "as, and those who read it might not any more. Run makewhole as the owner of the file, in its group, or as a "
        "superuser; then try again"
    )


def hidden_name(path: str) -> str:
    """Return another name in the folder of a path: no reader of datasets looks at names that begin with a dot."""
    folder, _, name = path.rpartition("/")
    hidden = f".{name}.{uuid4().hex[:12]}.inprogress"
    return f"{folder}/{hidden}" if folder else hidden


@contextmanager
def answering(root: str) -> Iterator[None]:
    """Report what a system of files raises as what it means. That a file is not there, or is there, is an answer.

    Raises:
        RefusedError: it refuses access.
        TransientError: it does not answer.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except (OSError, RuntimeError) as error:
        if is_refusal(error):
            raise RefusedError(f"{root}: access is refused; grant it to the user that makewhole runs as") from error
        raise TransientError(f"{root} does not answer: {_first_line(error)}") from error


def is_refusal(error: Exception) -> bool:
    """Return whether the error of a system of files says that access is refused."""
    return isinstance(error, PermissionError) or any(text in str(error) for text in _REFUSALS)


def _first_line(error: Exception) -> str:
    """Return what an error says first. HDFS's client has the call stack of the NameNode behind it, with escaped ends of
    lines."""
    return str(error).partition("\n")[0].partition("\\n")[0] or repr(error)


@contextmanager
def as_changed(root: str) -> Iterator[None]:
    """Report a folder that goes while it is listed: what was found until then is not all that there is.

    Raises:
        TransientError: one went.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise TransientError(f"{root}: a folder went while it was listed; try again") from error
