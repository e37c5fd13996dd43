"""Loops over bytes, compiled by numba: one pass, where numpy makes one for every question about a byte.

Compiled code reads and writes wherever it is told to. So a loop asks before each read whether it lies within the bytes
that it was given, and it is given arrays that are large enough.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function as machine code. numba is loaded at the first call: what only imports the function does without."""

    def __init__(self, function: Callable[P, R], make: Callable[[Any], Any]) -> None:
        self.function = function
        self._make = make

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.made(*args, **kwargs)
        return result

    @cached_property
    def made(self) -> Any:
        """What numba made of the function."""
        return self._make(self.function)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where compiled code calls this."""
        return self.made._numba_type_


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """The function as machine code, which is made at the first call and kept in a folder for other processes.

    That is the source's own `__pycache__`, or else the user's cache. Where neither can be written to, every process
    compiles for itself, which takes some seconds.

    What is kept is known by the source file alone: all that the function uses has to stand there too. And it is read
    before it is known to be of this source: the arguments have to be arrays, numbers and plain tuples, as a class that
    has another name now would stop it.
    """
    return Compiled(function, _kept)


def part(function: Callable[P, R]) -> Compiled[P, R]:
    """A function that compiled ones call, as machine code amid theirs. It takes whatever they give."""
    return Compiled(function, _amid)


def _kept(function: Any) -> Any:
    try:
        made = _by_numba(function, cache=True)
        folder = Path(made.stats.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # numba itself does not ask this of a zip file's
            return made
    except (RuntimeError, OSError):
        return _by_numba(function)


def _amid(function: Any) -> Any:
    return _by_numba(function, forceinline=True)


def _by_numba(function: Any, **options: bool) -> Any:
    """Without references being counted: loops that call each other for every leaf would do little else. Whoever calls
    the outermost keeps the arrays, and one that makes an array of its own does not compile."""
    import numba

    compile_as: Any = numba.njit  # one of the options is not in its stubs
    return compile_as(function, nogil=True, _nrt=False, **options)
