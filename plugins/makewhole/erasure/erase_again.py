"""Erase keys again that windows have read since they were erased: their own records and rows are still there."""

from collections.abc import Iterator, Sequence

import polars as pl

from makewhole.compute.keys import hash_hex
from makewhole.erasure.erase_key import EraseRequest, ErasureContext, ErasureDone, erase_key
from makewhole.journal.retention import erasures
from makewhole.lake.storage import Storage
from makewhole.model.pipeline import Pipeline
from makewhole.model.retention import Erasure, erased_among

_COLUMNS = ("key", "key_hi", "key_lo")
_ROWS = 1 << 16
_BITS = 65_536


def erase_again(context: ErasureContext, pipeline: Pipeline) -> Iterator[ErasureDone]:
    """Erase every key that was erased before and that windows opened since have read, as it was asked for then.

    Raises:
        RefusedError: a window is open, or a plan or a question waits; nothing was erased.
        TransientError: a system does not answer; what is left goes next time.
    """
    with context.journal.transaction() as journal:
        known = erasures.erasures(journal, pipeline.name)
        if not known:
            return
        since = min(one.erased_at or one.asked_at for one in known)
        numbers = erasures.windows_since(journal, pipeline.name, since)
    for key, erasure in sorted(_keys_back(context.storage, pipeline.name, numbers, known).items()):
        request = EraseRequest(pipeline=pipeline, key=key, asked_by=erasure.asked_by, reason=erasure.reason)
        yield erase_key(context, request)


def _keys_back(storage: Storage, pipeline: str, numbers: Sequence[int], known: Sequence[Erasure]) -> dict[str, Erasure]:
    """Return the keys in snapshots of windows that were erased on request, each with its latest erasure. Most others
    are left out by sixteen bits of their hashes."""
    prefixes = sorted({one.prefix for one in known})
    found: dict[str, Erasure] = {}
    for number in numbers:
        files = storage.files_below(f"{pipeline}/window={number}")
        for path in (file.path for file in files if file.path.endswith(".parquet")):
            if not set(_COLUMNS) <= set(storage.columns(path)):
                continue
            for part in storage.parquet_batches([path], _COLUMNS, _ROWS):
                own = part.filter((pl.col("key_hi") % _BITS).is_in(prefixes)).unique()
                hashes = dict(own.select("key", hash_hex()).iter_rows())
                for key, key_hash in hashes.items():
                    if erased_among(known, [key_hash]):
                        found[key] = next(one for one in reversed(known) if one.is_of(key_hash))
    return found
