"""Prepare the next chunk in a thread while the caller waits for the answer to the one before."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

_T = TypeVar("_T")


class Prefetch(Generic[_T]):
    """The results of `make` by number, taken in order; `make` does no I/O at a server. A context manager."""

    def __init__(self, make: Callable[[int], _T], numbers: int) -> None:
        self._make, self._numbers = make, numbers
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead")
        self._next: tuple[int, Future[_T]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(cancel_futures=True)

    def start(self, number: int) -> None:
        """Begin to make a result, if there is one of this number; called again, it is not made again."""
        if number < self._numbers and (self._next is None or self._next[0] != number):
            self._next = number, self._executor.submit(self._make, number)

    def take(self, number: int) -> _T:
        """Return a result: wait for it, or make it now. An error of making it is raised here."""
        self.start(number)
        assert self._next is not None
        (_, future), self._next = self._next, None
        return future.result()
