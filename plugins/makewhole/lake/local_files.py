"""Keep what a step works with in files of this machine that have no name and that no other process can read."""

import pickle
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import IO, Any, Generic, TypeVar

from makewhole.model.closing import ClosingContext

Item = TypeVar("Item")


def local_file(stack: ExitStack) -> IO[bytes]:
    """Return a new file without a name, which is gone when the stack is closed."""
    return stack.enter_context(tempfile.TemporaryFile(prefix="makewhole-plan-"))


class ObjectFile(ClosingContext):
    """Objects in the order in which they were added. Close it after use; no other process can read it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._end = 0

    def close(self) -> None:
        """Delete the file."""
        self._stack.close()

    @cached_property
    def _file(self) -> IO[bytes]:
        return local_file(self._stack)

    def add(self, thing: Any) -> int:
        """Add an object; return its place."""
        place, content = self._end, pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
        if self._file.tell() != place:  # each seek writes out what is buffered
            self._file.seek(place)
        self._file.write(content)
        self._end += len(content)
        return place

    def read(self, place: int) -> Any:
        """Return the object at a place that `add` returned."""
        self._file.seek(place)
        return pickle.load(self._file)


class BatchFile(ClosingContext, Generic[Item]):
    """Lists of things, one of which is in memory at a time. It can be read any number of times. Close it after use."""

    def __init__(self) -> None:
        self._file = ObjectFile()
        self._places: list[int] = []

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def add(self, batch: list[Item]) -> None:
        """Add a list."""
        self._places.append(self._file.add(batch))

    def __iter__(self) -> Iterator[list[Item]]:
        return (self._file.read(place) for place in self._places)
