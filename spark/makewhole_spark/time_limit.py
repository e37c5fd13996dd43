"""Hold a step to its time limit inside the application: Airflow knows one limit for all steps of an application."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

logger = logging.getLogger("makewhole")
_LAST_SECONDS = 15.0  # what is done at the end must not hang as well


@contextmanager
def ending_process_after(
    limit: timedelta, message: str, code: int, at_the_end: Callable[[], None] | None = None
) -> Iterator[None]:
    """End this process with an exit code, and Spark's with it, when the block takes longer than the limit.

    `message` is logged before: as an error, or as a warning where the exit code is 0. A step that hangs waits in a
    library, where no exception reaches it; what it had not committed, PostgreSQL rolls back. `at_the_end` is called
    before, and has some seconds.
    """
    timer = threading.Timer(limit.total_seconds(), _end, (message, code, at_the_end))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(message: str, code: int, at_the_end: Callable[[], None] | None) -> None:
    logger.log(logging.ERROR if code else logging.WARNING, "%s", message)
    if at_the_end is not None:
        last = threading.Thread(target=at_the_end, daemon=True)
        last.start()
        last.join(_LAST_SECONDS)
    logging.shutdown()
    os._exit(code)
