"""Judge keys in a process of its own, as `makewhole run --keys` has it judged.

In: one JSON object, `pipeline` and `windows` (number → keys). Out: one JSON object a line, a `KeyVerdict` each. An
error is on the error stream, with the exit codes of jobs.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NoReturn

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journey.copies import read_manifests, with_snapshots
from makewhole.model.errors import MakewholeError, PermanentError
from makewhole.window.context import window_context
from makewhole_spark.carrier import Result, Task
from makewhole_spark.of_keys.judge_keys import judge_keys

_TRANSIENT, _PERMANENT = 1, 64


class HereCarrier:
    """Runs tasks in this process, one after the other."""

    parallelism = 1

    def carry(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> list[Result]:
        """Run every task; return the answers in the order of the tasks."""
        return [run(task) for task in tasks]

    def frame(self, *_: object) -> NoReturn:
        """Refuse: no gate is asked."""
        raise NotImplementedError


def main() -> None:
    """Judge the keys that come in, and write what was found."""
    wanted = json.load(sys.stdin)
    try:
        with connect() as journal:
            for number, keys in wanted["windows"].items():
                newest = windows.newest(journal, wanted["pipeline"], number=int(number))[0]
                window = with_snapshots(journal, newest)
                manifests = read_manifests(journal, window)
                for verdict in judge_keys(HereCarrier(), journal, window_context(window), manifests, keys):
                    print(json.dumps(asdict(verdict), ensure_ascii=False))
    except MakewholeError as error:
        print(error, file=sys.stderr)
        sys.exit(_PERMANENT if isinstance(error, PermanentError) else _TRANSIENT)


if __name__ == "__main__":
    main()
