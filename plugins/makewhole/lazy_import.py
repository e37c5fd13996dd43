"""Put off loading a module until something of it is used: importing it costs others seconds who never use it."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any


@contextmanager
def loaded_at_first_use(name: str) -> Iterator[None]:
    """Have `from package import module` in the block take `package.module` unloaded; a module that is loaded, or not
    installed, is left alone.

    The module stays as it is until one of its attributes is asked for, or it is imported by its whole name: then it
    loads itself.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None and spec.loader is not None:
        spec.loader = LazyLoader(spec.loader)
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        package, _, own = name.rpartition(".")
        setattr(sys.modules[package], own, module)
    yield


class _Substitute(ModuleType):
    """A module that loads the one of its name when something of that is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or sys.modules.get(self.__name__) is self:
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


@contextmanager
def substituted(name: str) -> Iterator[None]:
    """Have `import module` in the block take a substitute, which loads the module at first use after the block; a
    module that is loaded is left alone."""
    substitute = _Substitute(name)
    taken = sys.modules.setdefault(name, substitute)
    try:
        yield
    finally:
        if taken is substitute:
            sys.modules.pop(name, None)


class _Absent:
    """A finder of modules that refuses some of them, and what is in them, to one thread."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._thread = names, threading.get_ident()

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002 - as Python asks
        is_of_them = any(name == module or name.startswith(f"{module}.") for module in self._names)
        if is_of_them and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is left out", name=name)
        return None


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """Have imports in the block, in this thread, find these modules not installed, for what does without them; modules
    that are loaded are left alone."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
