"""Look for secrets where others can read them: on command lines, and in files."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from tests.integration.cluster.application import Application

_LOOK_SECONDS = 0.2


def _tree(pids: list[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        try:
            yield from [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            continue


class CommandLines:
    """All command lines of some processes and of those below them, looked at again and again until the end."""

    def __init__(self, application: Application, processes: Iterable[psutil.Process]) -> None:
        self.seen: set[bytes] = set()
        self._pids = [application.process.pid, *(process.pid for process in processes)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            for process in _tree(self._pids):
                try:
                    self.seen.add(Path(f"/proc/{process.pid}/cmdline").read_bytes())
                except OSError:
                    continue

    def end(self) -> set[bytes]:
        self._over.set()
        self._thread.join()
        return self.seen


def files_holding(folder: Path, wanted: bytes) -> list[str]:
    """Return the files below a folder that hold some bytes."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sorted(str(path.relative_to(folder)) for path in files if wanted in path.read_bytes())
