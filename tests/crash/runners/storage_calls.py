"""Number and name what a step does to the files of the storage: those that are written, named, read and removed.

A folder is no step and no state: what lists one finds no file in it, whether it is there or not.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from pyarrow import fs

from makewhole import file_system
from makewhole.lake import give_name
from tests.crash.runners.file_calls import Caller, done

READING = ("store: read", "store: list")
STORE_STEPS = (*READING, *(f"store: {name}" for name in ("write", "link", "move", "remove")))
_ATTEMPT = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[=.-].*")


class _WatchedFiles(fs.LocalFileSystem):
    """The files of a folder."""

    caller: ClassVar[Caller]

    @classmethod
    def step(cls, name: str, path: str, work: Callable[[], Any]) -> Any:
        """Do the work of a step to a file."""
        step = f"store: {name}"
        return done(cls.caller, step, work, "" if step in READING else kind_of(path), reading=READING)

    def open_output_stream(self, path: str, *arguments: Any, **options: Any) -> Any:
        opened = super().open_output_stream
        return self.step("write", path, lambda: opened(path, *arguments, **options))

    def open_input_stream(self, path: str, *arguments: Any, **options: Any) -> Any:
        opened = super().open_input_stream
        return self.step("read", path, lambda: opened(path, *arguments, **options))

    def open_input_file(self, path: str) -> Any:
        opened = super().open_input_file
        return self.step("read", path, lambda: opened(path))

    def get_file_info(self, wanted: Any) -> Any:
        listed = super().get_file_info
        return self.step("list", "", lambda: listed(wanted))

    def move(self, path: str, target: str) -> None:
        moved = super().move
        self.step("move", target, lambda: moved(path, target))

    def delete_file(self, path: str) -> None:
        deleted = super().delete_file
        self.step("remove", path, lambda: deleted(path))


def watch_storage(caller: Caller) -> None:
    """Have what this process does to files of the storage be steps, for good."""
    _WatchedFiles.caller = caller
    real = file_system.arrow_file_system
    for name, module in list(sys.modules.items()):
        if name.startswith("makewhole") and vars(module).get("arrow_file_system") is real:
            vars(module)["arrow_file_system"] = _watched_files
    watched: Any = give_name
    watched.os = SimpleNamespace(link=_link)


def _watched_files(uri: str, *, is_shared: bool = False) -> tuple[fs.FileSystem, str]:
    assert not is_shared, "no phase publishes"
    return _WatchedFiles(), str(Path(uri).absolute())


def _link(source: str, target: str) -> None:
    _WatchedFiles.step("link", target, lambda: os.link(source, target))


def kind_of(path: str) -> str:
    """Return what a file is, by the folders that it lies in: the last one that has a name of its own."""
    folders = [part for part in Path(path).parts[:-1] if "=" not in part and not _ATTEMPT.fullmatch(part)]
    name = Path(path).name
    return f"{folders[-1]}/{_NUMBER.sub('', name) or 'hidden'}" if folders else name
