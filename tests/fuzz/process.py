"""Have inputs tried by a process that may die or hang, and say of which input it did."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tests.fuzz.worker import ROOM_BYTES, Notebook

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 60.0  # for one input, on a machine that does other work, too
_START_SECONDS = 300.0  # to load everything, and compile loops
_LOG_TAIL = 3_000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Number of inputs that were tried, and the fault of the last, with its bytes; `fault` None: there is none."""

    tried: int
    fault: str | None = None
    content: bytes = b""


class FuzzProcess:
    """A worker, started when it is asked for the first time, and after it ended; its files lie in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notebook_path, self._log_path = folder / "notebook", folder / "log"
        self._notebook_path.write_bytes(bytes(ROOM_BYTES))
        self._notebook = Notebook(self._notebook_path)
        self._worker: subprocess.Popen[str] | None = None

    def ask(self, command: dict[str, Any]) -> Outcome:
        """Have a command done, to its end or to that of the worker."""
        worker = self._started()
        assert worker.stdin is not None
        self._notebook.write(0, b"")
        worker.stdin.write(json.dumps(command) + "\n")
        worker.stdin.flush()
        lines: list[str] = []
        reader = Thread(target=self._read_line, args=(worker, lines), daemon=True)
        reader.start()
        has_hung = self._waited(reader)
        if has_hung:
            worker.kill()
            reader.join()
        if lines and lines[0]:
            answer = json.loads(lines[0])
            return Outcome(
                tried=answer["tried"], fault=answer.get("fault"), content=bytes.fromhex(answer.get("input", ""))
            )
        number, content = self._notebook.read()
        self._worker = None
        ended = "hung" if has_hung else f"died with {worker.wait()}"
        log = self._log_path.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
        return Outcome(tried=number, fault=f"the process {ended}\n{log}", content=content)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None and self._worker.stdin is not None:
            self._worker.stdin.close()
            self._worker.wait(_PATIENCE_SECONDS)
            self._worker = None

    def _started(self) -> subprocess.Popen[str]:
        if self._worker is None:
            with self._log_path.open("w") as log:
                self._worker = subprocess.Popen(
                    [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.worker", str(self._notebook_path)],
                    cwd=_ROOT,
                    env={**os.environ, "TMPDIR": str(self._folder)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        return self._worker

    @staticmethod
    def _read_line(worker: subprocess.Popen[str], lines: list[str]) -> None:
        assert worker.stdout is not None
        lines.append(worker.stdout.readline())

    def _waited(self, reader: Thread) -> bool:
        """Wait for an answer; return whether the worker stays at one input for too long."""
        number, since = -1, time.monotonic()
        while reader.is_alive():
            reader.join(0.2)
            present, _ = self._notebook.read()
            if present != number:
                number, since = present, time.monotonic()
            elif time.monotonic() - since > (_PATIENCE_SECONDS if number else _START_SECONDS):
                return True
        return False
