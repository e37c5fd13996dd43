"""Find which keys the files of snapshots hold, by a filter beside each large file, as the key index has them.

A snapshot is taken without filters: who asks for keys first reads the hashes of a file, and leaves the filter for those
who ask after. A filter never misses a key; the keys that it may hold are looked for in the file itself.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl

from makewhole.compute.buckets import is_in_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.filters import build_filter
from makewhole.key_index.files import filter_path, keys_by_filter, named_filter
from makewhole.lake.storage import Storage
from makewhole.model.errors import MakewholeError

logger = logging.getLogger(__name__)
_ROWS_LEAST = 20_000
_FILES_AT_ONCE = 8


def keys_held(storage: Storage, manifests: Sequence[Mapping[str, Any]], keys: pl.DataFrame) -> set[str]:
    """Return those of some keys (`key` and its hash, in the order of the hashes) of which the files of snapshots have a
    copy.

    Raises:
        CorruptionError: a file that a manifest names does not exist.
    """
    files = list(_files_asked(manifests, keys))
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        by_file = pool.map(lambda file: _keys_of_file(storage, *file), files)
        return {key for held in by_file for key in held}


def _files_asked(manifests: Sequence[Mapping[str, Any]], keys: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the files of the buckets that keys are in, each with these keys."""
    for manifest in manifests:
        for bucket, paths in manifest["files"].items():
            asked = keys.filter(is_in_bucket(bucket))
            if len(asked):
                yield from ((path, asked) for path in paths)


def _keys_of_file(storage: Storage, path: str, keys: pl.DataFrame) -> list[str]:
    maybe = keys_by_filter(storage, path, keys)
    if maybe is not None and maybe.is_empty():
        return []
    hashes = storage.read_parquet([path], list(HASH))
    assert hashes is not None
    if maybe is None and len(hashes) >= _ROWS_LEAST:
        _leave_filter(storage, path, hashes)
    return keys.join(hashes, on=HASH, how="semi")["key"].to_list()


def _leave_filter(storage: Storage, path: str, hashes: pl.DataFrame) -> None:
    """Write the filter of a file beside it; who may not write there asks the file the next time, too."""
    content = named_filter(path, build_filter(*(hashes[name].to_numpy() for name in HASH)))
    try:
        storage.write_once(filter_path(path), content)
    except (OSError, MakewholeError) as error:
        logger.info("no filter was left beside %s: %s", path, error)
