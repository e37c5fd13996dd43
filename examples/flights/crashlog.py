"""Note what a process is about to do, so that the one who kills it knows what it was doing."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class CrashLog:
    """A file with the last intention of a process: safely on disk before the intention is acted on."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def write(self, step: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Replace the last note."""
        draft = self._path.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid(), "step": step, "items": list(items)}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)

    def read(self, pid: int, step: str) -> list[dict[str, Any]]:
        """Return the items that process `pid` noted at `step`.

        Raises:
            RuntimeError: the last note is another one: the process was not killed where that was intended.
        """
        note = json.loads(self._path.read_text(encoding="utf-8"))
        if (note["pid"], note["step"]) != (pid, step):
            raise RuntimeError(
                f"{self._path.name}: the last note is {note['step']!r} by {note['pid']}, not {step!r} by {pid}"
            )
        items: list[dict[str, Any]] = note["items"]
        return items


def say(event: str, **fields: Any) -> None:
    """Print one line of JSON on the standard output, at once: the driver reads it."""
    print(json.dumps({"event": event, **fields}), flush=True)
