"""Describe what is fuzzed: how an input is drawn, and what is right of it."""

from random import Random
from typing import Protocol


class Target(Protocol):
    """A part of the product that reads what others wrote."""

    def draw(self, random: Random) -> bytes:
        """Return an input."""
        ...

    def check(self, content: bytes) -> None:
        """Hold the product to what is right of an input.

        Raises:
            AssertionError: an answer is wrong. Any other exception is one that the product let out, and as wrong.
        """
        ...
