"""Keep the key of masked values in a storage: beside the records and rows that the values can be read from anyway."""

import secrets
from contextlib import suppress
from functools import lru_cache

from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError

MASK_KEY = "mask.key"
"""The path of the key in a storage."""

_BYTES = 32


def ensure_mask_key(storage: Storage) -> bytes:
    """Return the key of a storage (32 bytes), made now when there is none. Of several that are made at once one stays.

    Raises:
        CorruptionError: what is there is no key.
    """
    if storage.read_if_exists(MASK_KEY) is None:
        with suppress(CorruptionError):  # another process was first, and its key stays
            storage.write_once(MASK_KEY, secrets.token_bytes(_BYTES))
    return read_mask_key(storage)


def read_mask_key(storage: Storage) -> bytes:
    """Return the key of a storage.

    Raises:
        CorruptionError: it is gone, or no key.
    """
    return _read(storage)


def find_mask_key(storage: Storage) -> bytes | None:
    """Return the key of a storage; None: no window has masked anything yet.

    Raises:
        CorruptionError: what is there is no key.
    """
    return None if storage.read_if_exists(MASK_KEY) is None else read_mask_key(storage)


@lru_cache(maxsize=16)
def _read(storage: Storage) -> bytes:
    content = storage.read_if_exists(MASK_KEY)
    if content is None:
        raise CorruptionError(
            f"{storage.uri(MASK_KEY)}, the key of masked values, is gone: restore it from a copy of the storage. "
            "Without it nothing can be held to findings that were masked with it; running their windows again makes a "
            "new key"
        )
    if len(content) != _BYTES:
        raise CorruptionError(f"{storage.uri(MASK_KEY)} is no key of masked values: restore it from a copy")
    return content
