"""Makes the next thing while the caller waits for an answer about the one before."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

_T = TypeVar("_T")


class Prefetch(Generic[_T]):
    """Things by number, in order, of a `make` that asks nobody anything. A context manager."""

    def __init__(self, make: Callable[[int], _T], numbers: int) -> None:
        self._make, self._numbers = make, numbers
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead")
        self._next: tuple[int, Future[_T]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._beside.shutdown(cancel_futures=True)

    def start(self, number: int) -> None:
        """Begin to make it, if there is one; said again, it is not made again."""
        if number < self._numbers and (self._next is None or self._next[0] != number):
            self._next = number, self._beside.submit(self._make, number)

    def take(self, number: int) -> _T:
        """It, waited for or made now. What went wrong in making it is raised here, in its turn."""
        self.start(number)
        assert self._next is not None
        (_, made), self._next = self._next, None
        return made.result()
