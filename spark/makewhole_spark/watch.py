"""Watch how far the tasks of a step are while they run, for the log of its task and, in the journal, for who waits."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from makewhole.journal.database import connect
from makewhole.journal.results import step_progress
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import MakewholeError

logger = logging.getLogger("makewhole")
_SECONDS = 3.0  # what ends sooner is not looked at
_SECONDS_OF_LOG = 15.0
_LAST_SECONDS = 5.0

TaskCounts = Callable[[], tuple[int, int] | None]
"""How many tasks are done, of how many; None: it cannot be seen now."""


@dataclass(frozen=True, kw_only=True)
class StepWatch:
    """Watches the tasks of a step in a thread beside them, which nothing waits for. `label`: of the window."""

    place: StepPlace
    label: str

    @contextmanager
    def __call__(self, counts: TaskCounts) -> Iterator[None]:
        """Watch while the block runs."""
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(counts, ended), daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join(_LAST_SECONDS)

    def _watch(self, counts: TaskCounts, ended: threading.Event) -> None:
        """Look until the block has ended. Whatever goes wrong ends the watching, and nothing else."""
        began = logged = time.monotonic()
        noted = False
        with suppress(Exception):  # of Java's bridge, a driver: none may touch the step
            while not ended.wait(_SECONDS):
                if (progress := counts()) is None:
                    continue
                noted = self._note(*progress) or noted
                now = time.monotonic()
                if now - logged >= _SECONDS_OF_LOG:
                    logged = now
                    left = step_progress.time_left(*progress, now - began)
                    logger.info("%s: %s: %d of %d parts%s", self.label, self.place.step, *progress, left)
        if noted:
            with suppress(MakewholeError), connect() as journal:
                step_progress.forget(journal, self.place)

    def _note(self, done: int, total: int) -> bool:
        """Write it into the journal; return whether that was there."""
        try:
            with connect() as journal:
                step_progress.put(journal, self.place, done, total)
        except MakewholeError:
            return False
        return True
