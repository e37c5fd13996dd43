"""Give a class that has `close` the behaviour of a context manager."""

from abc import ABC, abstractmethod
from typing import Self


class ClosingContext(ABC):
    """A context manager that closes itself on exit, whatever ended the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what is held. Safe to call twice."""
