"""Compile loops over bytes with numba: one pass, where numpy makes one pass per comparison.

Compiled code checks no index. So a loop checks before each read that it lies within the given bytes, and the caller
gives it arrays that are large enough to write to.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function as machine code. numba is imported at the first call, not where the function is imported."""

    def __init__(self, function: Callable[P, R], compile_with: Callable[[Any], Any]) -> None:
        self.function = function
        self._compile_with = compile_with

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.dispatcher(*args, **kwargs)
        return result

    @cached_property
    def dispatcher(self) -> Any:
        """numba's dispatcher of the function."""
        return self._compile_with(self.function)

    @property
    def _numba_type_(self) -> Any:
        """The attribute that numba reads where compiled code calls this."""
        return self.dispatcher._numba_type_


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Compile the function at its first call, and cache the machine code in a folder for other processes.

    The folder is the source's own `__pycache__`, or else the user's cache. Where neither is writable, every process
    compiles for itself, which takes some seconds.

    The source file alone identifies a cached version: all that the function uses must be in that file. And a cached
    version is unpickled before its source is compared: the arguments must be arrays, numbers and plain tuples, since
    the pickle of a class that was renamed cannot be read.
    """
    return Compiled(function, _compile_cached)


def inlined(function: Callable[P, R]) -> Compiled[P, R]:
    """Compile the function as part of the compiled functions that call it, for their types of arguments."""
    return Compiled(function, _compile_inlined)


def _compile_cached(function: Any) -> Any:
    try:
        dispatcher = _compile(function, cache=True)
        folder = Path(dispatcher.stats.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # numba does not check that the cache of a source in a zip file is writable
            return dispatcher
    except (RuntimeError, OSError):
        return _compile(function)


def _compile_inlined(function: Any) -> Any:
    return _compile(function, forceinline=True)


def _compile(function: Any, **options: bool) -> Any:
    """Compile without reference counting, which would take most of the time of loops that call each other per leaf.

    The caller of the outermost function keeps the arrays alive; a function that allocates an array does not compile.
    """
    import numba

    compile_as: Any = numba.njit  # as Any: the stubs lack the option _nrt
    return compile_as(function, nogil=True, _nrt=False, **options)
