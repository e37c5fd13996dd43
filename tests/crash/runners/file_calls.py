"""Number and name what a runner does to files: those of a dataset in a folder, and those of Iceberg tables.

Files are asked for and read as often as there are some: the same again is the same step, as nothing is between the two
but what was read.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, TypeVar

from pyiceberg.io.pyarrow import PyArrowFile

from makewhole.file_stores import local_store

_T = TypeVar("_T")
_KINDS = {".parquet": "data", "-m0.avro": "entries", ".avro": "list", ".metadata.json": "metadata"}
_READING = ("files: list", "files: find", "files: read", "files: sync", "lake: read")
FILE_STEPS = (*_READING, *(f"files: {name}" for name in ("mkdir", "write", "link", "rename", "unlink")), "lake: write")


class Caller(Protocol):
    """Makes a call a step; the same one again may be the same step. `last`: the name of the step before."""

    @property
    def last(self) -> str: ...

    def named(self, name: str, work: Callable[[], _T], *, touches: str, is_repeatable: bool) -> _T: ...


def watch_files(caller: Caller) -> None:
    """Have the calls of this process to files be steps, for good."""
    _watch_folders(caller)
    _watch_tables(caller)


def done(caller: Caller, name: str, work: Callable[[], _T], kind: str = "", reading: Sequence[str] = _READING) -> _T:
    """Do the work of a step to a file of a kind; those of `reading` are one step as often as they come again."""
    return caller.named(f"{name} {kind}".strip(), work, touches=name, is_repeatable=name in reading)


class _WatchedPath(type(Path())):  # type: ignore[misc]
    """A path of a dataset."""

    caller: ClassVar[Caller]

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make each folder that is not there in a step of its own: one that is there is only looked at."""
        missing = [path for path in (self, *self.parents) if not os.path.isdir(path)]  # noqa: PTH112 - not a step
        for folder in reversed(missing):
            done(self.caller, "files: mkdir", partial(super(_WatchedPath, folder).mkdir, mode, exist_ok=True))

    def open(self, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        name, opened = "files: write" if "x" in mode else "files: read", super().open
        return done(self.caller, name, lambda: opened(mode, *arguments, **options))

    def stat(self, **options: Any) -> os.stat_result:
        """Look at a file; at those that were listed in the same step: some may be half written, and are no state."""
        look: Callable[[], os.stat_result] = partial(super().stat, **options)
        return look() if self.caller.last == "files: list" else done(self.caller, "files: find", look)

    def replace(self, target: Any) -> Any:
        return done(self.caller, "files: rename", partial(super().replace, target))

    def unlink(self, missing_ok: bool = False) -> None:
        done(self.caller, "files: unlink", partial(super().unlink, missing_ok))


def _watch_folders(caller: Caller) -> None:
    def walk(*arguments: Any, **options: Any) -> Iterator[Any]:
        return iter(done(caller, "files: list", lambda: list(os.walk(*arguments, **options))))

    def link(*arguments: Any) -> None:
        done(caller, "files: link", lambda: os.link(*arguments))

    def fsync(file: Any) -> None:
        done(caller, "files: sync", lambda: os.fsync(file))

    _WatchedPath.caller = caller
    module: Any = local_store
    module.Path = _WatchedPath
    not_watched = {name: getattr(os, name) for name in ("stat", "open", "close", "O_RDONLY")}
    module.os = SimpleNamespace(walk=walk, link=link, fsync=fsync, **not_watched)


def _watch_tables(caller: Caller) -> None:
    opened, created = PyArrowFile.open, PyArrowFile.create

    def open_file(file: PyArrowFile, *arguments: Any, **options: Any) -> Any:
        return done(caller, "lake: read", lambda: opened(file, *arguments, **options))

    def create_file(file: PyArrowFile, *arguments: Any, **options: Any) -> Any:
        kind = next(kind for ending, kind in _KINDS.items() if file.location.endswith(ending))
        return done(caller, "lake: write", lambda: created(file, *arguments, **options), kind)

    watched: Any = PyArrowFile
    watched.open, watched.create = open_file, create_file
