"""Compile functions with bounds checks, so that they raise where the product's would read outside an array.

Bytes that are read outside and then dropped change no result, so that no other test can see it. A negative index counts
from the end, here too.
"""

from contextlib import AbstractContextManager
from functools import cache
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

import numba

from makewhole.native.compiled import Compiled


def bounds_checked(module: ModuleType) -> AbstractContextManager[Any]:
    """Make the compiled functions of a module raise IndexError at an index outside an array."""
    return mock.patch.dict(vars(module), _checked(module))


@cache
def _checked(module: ModuleType) -> dict[str, Any]:
    scope = dict(vars(module))
    names = [name for name, function in scope.items() if isinstance(function, Compiled)]
    for name in names:
        code = vars(module)[name].function.__code__
        scope[name] = numba.njit(boundscheck=True)(FunctionType(code, scope, name))
    return {name: scope[name] for name in names}
