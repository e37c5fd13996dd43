"""Write and read the archive of a window: which files it has, and that each is as it was written.

It is a ZIP file. `contents.json`, its last member, has the SHA-256 of every other one.
"""

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from makewhole.export.container import EPOCH, MODE, is_as_written
from makewhole.model.errors import CorruptionError, RefusedError

CONTENTS = "contents.json"
README = "README.md"
CHAIN = "chain.json"
ANCHORS = "anchors/"
STATES = "windows.json"
WINDOW = "window.json"
MANIFESTS = "manifests.json"
GATE = "gate.json"
FINDINGS = "findings.jsonl"
PLAN = "plan.json"
ACTIONS = "actions.tsv"
ERASURES = "erasures.json"
PUBLIC_KEYS = "public.pem"
FORMAT = 1

_MOST_BYTES = 2 << 30  # of a member, unpacked
_UNREADABLE: tuple[type[Exception], ...] = (
    KeyError,
    zipfile.BadZipFile,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RuntimeError,  # of a member that says it is encrypted, or packed by a way that there is not
    struct.error,
    zlib.error,
)


@dataclass(kw_only=True)
class ArchiveWriter:
    """Adds members to an archive, and notes their digests."""

    into: zipfile.ZipFile
    digests: dict[str, str] = field(default_factory=dict)

    def add_lines(self, name: str, lines: Iterable[bytes]) -> None:
        """Add a member of lines, one in memory at a time."""
        digest = hashlib.sha256()
        with self.into.open(_member(name), "w", force_zip64=True) as member:
            for line in lines:
                digest.update(line)
                member.write(line)
        self.digests[name] = digest.hexdigest()

    def add_json(self, name: str, document: Any) -> None:
        """Add a document."""
        self.add_lines(name, [json.dumps(document, indent=1, ensure_ascii=False).encode()])


def _contents(digests: Mapping[str, Any]) -> bytes:
    document = {"format": FORMAT, "sha256": dict(sorted(digests.items()))}
    return json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=EPOCH)
    member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, MODE << 16
    return member


@contextmanager
def written_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Write an archive that is there as a whole or not at all, and that its owner alone may read.

    Raises:
        RefusedError: the file is there already, or its folder is not.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, MODE)
    except OSError as error:
        raise RefusedError(
            f"{path} cannot be written ({type(error).__name__}); name a file in a folder of yours"
        ) from error
    try:
        with os.fdopen(descriptor, "w+b") as file:
            with zipfile.ZipFile(file, "w") as into:
                writer = ArchiveWriter(into=into)
                yield writer
                writer.add_lines(CONTENTS, [_contents(writer.digests)])
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)
    except FileExistsError as error:
        raise RefusedError(f"{path} is there already, and was left as it is; name another file") from error
    finally:
        unfinished.unlink(missing_ok=True)


class ReadArchive:
    """An archive that is read; nothing of it is unpacked to a disk. A member that is too large is refused."""

    def __init__(self, file: zipfile.ZipFile, name: str) -> None:
        self._file, self._name = file, name
        self.names = frozenset(file.namelist())
        contents = self.json(CONTENTS)
        digests = contents.get("sha256") if isinstance(contents, dict) else None
        self.digests: dict[str, Any] = digests if isinstance(digests, dict) else {}

    def problems(self) -> Iterator[str]:
        """Yield the members that are not as they were written, are missing, or came to it, each in a sentence."""
        if len(self._file.namelist()) != len(self.names):
            yield f"{self._name}: a file is in it twice"
        elif self._file.fp is None or not is_as_written(cast("BinaryIO", self._file.fp), self._file.infolist()):
            yield f"{self._name}: is not packed as it was written: there are other bytes around the files in it"
        if self.bytes(CONTENTS) != _contents(self.digests):
            yield f"{CONTENTS}: is not in the form in which it is written"
        for name in sorted(self.names - {CONTENTS} - set(self.digests)):
            yield f"{name}: is in the archive, and {CONTENTS} does not name it"
        for name, digest in sorted(self.digests.items()):
            if name not in self.names:
                yield f"{name}: is named in {CONTENTS} and is not there"
            elif _sha256(self.lines(name)) != digest:
                yield f"{name}: is not what was written: its SHA-256 is another one"

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a member.

        Raises:
            CorruptionError: it is not there, cannot be read, or is larger than any that is written.
        """
        left = _MOST_BYTES
        try:
            with self._file.open(name) as member:
                for line in member:
                    left -= len(line)
                    if left < 0:
                        raise CorruptionError(f"{self._name}: {name} is too large to be of a window's archive")
                    yield line
        except _UNREADABLE as error:
            raise CorruptionError(f"{self._name}: {name} cannot be read ({type(error).__name__})") from error

    def bytes(self, name: str) -> bytes:
        """Return a member whole. Raises as `lines` does."""
        return b"".join(self.lines(name))

    def json(self, name: str) -> Any:
        """Return the document in a member. Raises as `lines` does."""
        try:
            return json.loads(self.bytes(name))
        except (ValueError, RecursionError) as error:
            raise CorruptionError(f"{self._name}: {name} is no JSON") from error


def _sha256(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    return digest.hexdigest()


@contextmanager
def read_archive(path: Path) -> Iterator[ReadArchive]:
    """Read an archive.

    Raises:
        RefusedError: there is no such file, or it is no archive of a window.
        CorruptionError: a member cannot be read.
    """
    try:
        file = zipfile.ZipFile(path)
    except _UNREADABLE as error:
        raise RefusedError(
            f"{path} is no archive of a window ({type(error).__name__}); `makewhole export` writes one"
        ) from error
    with file:
        if CONTENTS not in file.namelist():
            raise RefusedError(f"{path} is no archive of a window: it has no {CONTENTS}")
        yield ReadArchive(file, path.name)
