"""Number and name what a runner does to files: those of a dataset in a folder, and those of Iceberg tables.

Files are asked for and read as often as there are some: the same again is the same step, as nothing is between the two
but what was read.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from pyiceberg.io.pyarrow import PyArrowFile

from makewhole.file_stores import local_store

_T = TypeVar("_T")
_KINDS = {".parquet": "data", "-m0.avro": "entries", ".avro": "list", ".metadata.json": "metadata"}
_READING = ("files: list", "files: find", "files: read", "files: sync", "lake: read")
FILE_STEPS = (*_READING, *(f"files: {name}" for name in ("write", "link", "rename", "unlink")), "lake: write")


class Caller(Protocol):
    """Makes a call a step; the same one again may be the same step."""

    def named(self, name: str, work: Callable[[], _T], *, touches: str, is_repeatable: bool) -> _T: ...


def watch_files(caller: Caller) -> None:
    """Have the calls of this process to files be steps, for good."""
    _watch_folders(caller)
    _watch_tables(caller)


def _done(caller: Caller, name: str, work: Callable[[], _T], kind: str = "") -> _T:
    return caller.named(f"{name} {kind}".strip(), work, touches=name, is_repeatable=name in _READING)


def _watch_folders(caller: Caller) -> None:
    class WatchedPath(type(Path())):  # type: ignore[misc]
        """A path of a dataset."""

        def open(self, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            name = "files: write" if "x" in mode else "files: read"
            return _done(caller, name, lambda: super(WatchedPath, self).open(mode, *arguments, **options))

        def stat(self, **options: Any) -> os.stat_result:
            status: os.stat_result = _done(caller, "files: find", lambda: super(WatchedPath, self).stat(**options))
            return status

        def replace(self, target: Any) -> Any:
            return _done(caller, "files: rename", lambda: super(WatchedPath, self).replace(target))

        def unlink(self, missing_ok: bool = False) -> None:
            _done(caller, "files: unlink", lambda: super(WatchedPath, self).unlink(missing_ok))

    def walk(*arguments: Any, **options: Any) -> Iterator[Any]:
        return iter(_done(caller, "files: list", lambda: list(os.walk(*arguments, **options))))

    def link(*arguments: Any) -> None:
        _done(caller, "files: link", lambda: os.link(*arguments))

    def fsync(file: Any) -> None:
        _done(caller, "files: sync", lambda: os.fsync(file))

    module: Any = local_store
    module.Path = WatchedPath
    module.os = SimpleNamespace(walk=walk, link=link, fsync=fsync, open=os.open, close=os.close, O_RDONLY=os.O_RDONLY)


def _watch_tables(caller: Caller) -> None:
    opened, created = PyArrowFile.open, PyArrowFile.create

    def open_file(file: PyArrowFile, *arguments: Any, **options: Any) -> Any:
        return _done(caller, "lake: read", lambda: opened(file, *arguments, **options))

    def create_file(file: PyArrowFile, *arguments: Any, **options: Any) -> Any:
        kind = next(kind for ending, kind in _KINDS.items() if file.location.endswith(ending))
        return _done(caller, "lake: write", lambda: created(file, *arguments, **options), kind)

    watched: Any = PyArrowFile
    watched.open, watched.create = open_file, create_file
