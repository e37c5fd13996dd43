"""Try inputs in a process of its own, which may die of one: each is written down before it is tried.

A command stands on a line of the standard input, as JSON: `{"target", "seconds", "seed"}`, or `{"target", "kept"}` with
a file. The answer stands on a line of the standard output. Where the process dies or hangs, the input is in the file
that the first argument names.
"""

import json
import mmap
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROOM_BYTES = 4 << 20
_HEAD_BYTES = 16
_MOST_SECONDS = 10.0  # of the processor, for one input
_MOST_GROWTH_BYTES = 768 << 20
_MORE_ADDRESSES_BYTES = 4 << 30


class Notebook:
    """A file that holds the number of inputs so far and the present one, whatever becomes of the process."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), ROOM_BYTES)

    def write(self, number: int, content: bytes) -> None:
        """Note an input."""
        kept = content[: ROOM_BYTES - _HEAD_BYTES]
        self._map[:_HEAD_BYTES] = number.to_bytes(8, "big") + len(kept).to_bytes(8, "big")
        self._map[_HEAD_BYTES : _HEAD_BYTES + len(kept)] = kept

    def read(self) -> tuple[int, bytes]:
        """Return the number and the content of the present input."""
        size = int.from_bytes(self._map[8:_HEAD_BYTES], "big")
        return int.from_bytes(self._map[:8], "big"), self._map[_HEAD_BYTES : _HEAD_BYTES + size]


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _fault_of(target: Target, content: bytes) -> str | None:
    """Return what is wrong with the answer to an input; None: nothing is."""
    began, peak = time.process_time(), _peak_bytes()
    try:
        target.check(content)
    except Exception:  # whatever the product lets out is what is looked for
        return traceback.format_exc()
    spent, grown = time.process_time() - began, _peak_bytes() - peak
    if spent > _MOST_SECONDS:
        return f"took {spent:.1f} s of the processor"
    return f"took {grown >> 20} MiB of memory" if grown > _MOST_GROWTH_BYTES else None


def _tried(target: Target, command: dict[str, Any], notebook: Notebook) -> dict[str, Any]:
    random, number = Random(command["seed"]), 0
    end = time.monotonic() + command["seconds"]
    while number == 0 or time.monotonic() < end:
        content = target.draw(random)
        number += 1
        notebook.write(number, content)
        fault = _fault_of(target, content)
        if fault is not None:
            return {"tried": number, "fault": fault, "input": content.hex()}
    return {"tried": number}


def _answer(command: dict[str, Any], notebook: Notebook) -> dict[str, Any]:
    target = TARGETS[command["target"]]()
    if "kept" not in command:
        return _tried(target, command, notebook)
    content = Path(command["kept"]).read_bytes()
    notebook.write(1, content)
    fault = _fault_of(target, content)
    return {"tried": 1} if fault is None else {"tried": 1, "fault": fault, "input": content.hex()}


def _limit_addresses() -> None:
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MORE_ADDRESSES_BYTES, most))


def main() -> None:
    """Answer commands until there are none."""
    notebook = Notebook(Path(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    _limit_addresses()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), notebook)), file=answers, flush=True)


if __name__ == "__main__":
    main()
