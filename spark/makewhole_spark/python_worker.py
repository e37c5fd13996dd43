"""Let a Python worker of Spark work faster: start its next task sooner, and use its memory again."""

import ctypes
import gc
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from zipimport import zipimporter

# Of glibc's malloc.h, with values that it takes: the greatest block that is no mapping of its own, and how much free
# memory is kept.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 512 << 20, _TOP_PAD: 64 << 20}

_ALLOCATOR = "_RJEM_MALLOC_CONF"
_DEFAULTS_OF_POLARS = ("dirty_decay_ms:500,muzzy_decay_ms:1000", "thp:always,metadata_thp:always")

_modules_at_freeze = 0


def memory_of_polars(there: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which polars is to be loaded in workers, but for those that are `there`: it keeps for
    some seconds what it frees, as `keep_freed_memory` has the C library keep it.

    Where polars is imported it writes its own defaults there, for the processes below it, too: these are no settings.
    """
    given = there.get(_ALLOCATOR, "")
    for default in _DEFAULTS_OF_POLARS:
        given = given.replace(default, "")
    return {} if given.strip(",") else {_ALLOCATOR: "dirty_decay_ms:5000,muzzy_decay_ms:-1"}


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what is freed for the next chunk of rows, in the place of asking the kernel again.

    The kernel clears each page that it gives. Where columns of some megabytes come and go with each chunk, that takes a
    fifth of the processor time. Other C libraries have no such settings, and stay as they are.
    """
    with suppress(AttributeError, OSError):
        set_option = ctypes.CDLL(None).mallopt
        for option, value in _SETTINGS.items():
            set_option(option, value)


def shorten_next_start() -> None:
    """Make the next task of this worker start up to half a second sooner; to be called at the end of each task."""
    _forget_zips()
    _freeze_modules()


def _forget_zips() -> None:
    """Remove the importers of zip files from Python's cache.

    Spark has Python invalidate its caches before each task, and Python 3.11 then reads the whole directory of
    `pyspark.zip` again, once for every package in it that was imported from. Later imports make a new importer, from
    the directory as it was read first.
    """
    for path in [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]:
        del sys.path_importer_cache[path]


def _freeze_modules() -> None:
    """Leave the loaded modules out of garbage collection, again whenever there are more of them.

    Spark collects garbage after each task, before it gives the worker the next one. Walking over the objects of
    Arrow's, polars' and numba's modules takes a tenth of a second, and they are never garbage.
    """
    global _modules_at_freeze
    if len(sys.modules) > _modules_at_freeze:
        _modules_at_freeze = len(sys.modules)
        gc.collect()
        gc.freeze()
