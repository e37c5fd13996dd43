"""Erase keys again that windows have read since they were erased: their own records and rows are still there."""

from collections.abc import Iterator, Sequence

import polars as pl

from makewhole.compute.keys import hash_hex, with_hash
from makewhole.erasure.erase_key import EraseRequest, ErasureContext, ErasureDone, erase_key
from makewhole.erasure.half_written import require_unnamed
from makewhole.erasure.stored_rows import is_spared
from makewhole.journal.retention import erasures
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Pipeline
from makewhole.model.retention import Erasure

_COLUMNS = ("key", "key_hi", "key_lo")
_UNREADABLE = ("business_key",)
"""Columns of the files of records that could not be read."""
_ROWS = 1 << 16
_BITS = 65_536
_KeyOfChains = tuple[str, tuple[str, ...]]
"""A key, and the points of chains that it is not of."""


def erase_again(context: ErasureContext, pipeline: Pipeline) -> Iterator[ErasureDone]:
    """Erase every key that was erased before and that windows opened since have read, as it was asked for then.

    Raises:
        RefusedError: a window is open, or a plan or a question waits; nothing was erased.
        CorruptionError: a file that the journal names cannot be read.
        TransientError: a system does not answer; what is left goes next time.
    """
    with context.journal.transaction() as journal:
        known = erasures.erasures(journal, pipeline.name)
        if not known:
            return
        numbers, searched_to = erasures.windows_since(journal, pipeline.name)
    for (key, spares), erasure in sorted(_keys_back(context, pipeline.name, numbers, known).items()):
        yield erase_key(
            context,
            EraseRequest(pipeline=pipeline, key=key, asked_by=erasure.asked_by, reason=erasure.reason, spares=spares),
        )
    with context.journal.transaction() as journal:
        erasures.note_searched(journal, known, searched_to)


def _keys_back(
    context: ErasureContext, pipeline: str, numbers: Sequence[int], known: Sequence[Erasure]
) -> dict[_KeyOfChains, Erasure]:
    """Return the keys in snapshots of windows that were erased on request, also of records that could not be read, each
    with its latest erasure. Most others are left out by sixteen bits of their hashes."""
    storage, prefixes = context.storage, sorted({entry.prefix for entry in known})
    latest: dict[_KeyOfChains, Erasure] = {}
    for number in numbers:
        files = storage.files_below(f"{pipeline}/window={number}")
        whole = _with_keys(context, pipeline, [file.path for file in files if file.path.endswith(".parquet")])
        for path, columns in whole.items():
            for part in storage.parquet_batches([path], columns, _ROWS):
                keys = part if columns == _COLUMNS else with_hash(part.select(key="business_key").drop_nulls())
                own = keys.filter((pl.col("key_hi") % _BITS).is_in(prefixes)).unique()
                for key, key_hash in own.select("key", hash_hex()).iter_rows():
                    of_key = [entry for entry in known if entry.is_of(key_hash) and not is_spared(path, entry.spares)]
                    latest |= {(key, entry.spares): entry for entry in of_key}
    return latest


def _with_keys(context: ErasureContext, pipeline: str, paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the files that have keys, of those that are whole, with the columns that say them: what is half written is
    not named."""
    wanted, unreadable = dict[str, tuple[str, ...]](), dict[str, CorruptionError]()
    for path in paths:
        try:
            columns = context.storage.columns(path)
        except CorruptionError as error:
            unreadable[path] = error
        else:
            key_columns = next((names for names in (_COLUMNS, _UNREADABLE) if set(names) <= set(columns)), None)
            wanted |= {} if key_columns is None else {path: key_columns}
    with context.journal.transaction() as journal:
        require_unnamed(journal, context.storage, pipeline, unreadable)
    return wanted
