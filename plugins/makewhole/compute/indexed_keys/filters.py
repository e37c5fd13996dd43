"""Find which keys a run of the key index may know, from some 26 bits per key that stand beside the run.

The keys are in groups by the high half of their hash, about four to a group; of each key the low 24 bits of the other
half are kept, in two columns of 16 and of 8 bits. So a filter never misses a key of its run, and holds about one other
key of four million for one of them. It only saves reading: what may be in a run is looked up there.
"""

import struct
import zlib

import numpy as np

from makewhole.model.errors import CorruptionError
from makewhole.native.arrays import Bools, UInt8s, UInt64s
from makewhole.native.fingerprints import Fingerprints, find_fingerprints

_KEYS_OF_A_GROUP = 4
_GROUP_MOST = 255
_HEADER = struct.Struct("<4sIQQQB")  # magic, CRC-32 of the rest, keys, groups, least high half, shift
_MAGIC = b"MWF2"
_BYTES_BEFORE_CONTENT = 8


def build_filter(key_hi: UInt64s, key_lo: UInt64s) -> bytes:
    """Build the filter of the keys with these hashes, in any order; a key may be there several times."""
    high, low = _sorted(key_hi, key_lo)
    if len(high):
        is_new = np.concatenate([[True], (high[1:] != high[:-1]) | (low[1:] != low[:-1])])
        high, low = high[is_new], low[is_new]
    least, shift = _spread(high)
    groups = (high - least) >> np.uint64(shift)
    sizes = np.bincount(groups.astype(np.int64), minlength=0)
    if len(sizes) and sizes.max() > _GROUP_MOST:  # no hashes are so unequal; and every key may be in no groups
        return _sealed(_HEADER.pack(_MAGIC, 0, len(high), 0, 0, 0))
    header = _HEADER.pack(_MAGIC, 0, len(high), len(sizes), int(least), shift)
    fingerprints = low.astype("<u2").tobytes() + (low >> np.uint64(16)).astype(np.uint8).tobytes()
    return _sealed(header + sizes.astype(np.uint8).tobytes() + fingerprints)


def maybe_in(content: bytes | memoryview, key_hi: UInt64s, key_lo: UInt64s) -> Bools:
    """Return for each key, by its hash, whether the run of a filter may know it. False is certain. Keys in the order
    of their hashes are asked for sooner: the filter is read from its begin to its end.

    Raises:
        CorruptionError: the filter is not as it was built.
    """
    keys, least, shift, sizes, fingerprints = _opened(content)
    if keys and not len(sizes):
        return np.ones(len(key_hi), dtype=np.bool_)
    edges = np.zeros(len(sizes) + 1, dtype=np.uint32)
    np.cumsum(sizes, dtype=np.uint32, out=edges[1:])
    # What is below the least wraps round to a group far behind the last one.
    groups = np.where(key_hi < least, np.uint64(len(sizes)), (key_hi - least) >> np.uint64(shift))
    is_known = np.zeros(len(key_hi), dtype=np.bool_)
    wanted = key_lo.astype(np.uint16), (key_lo >> np.uint64(16)).astype(np.uint8)
    find_fingerprints(groups, wanted, edges, fingerprints, is_known)
    return is_known


def _sorted(high: UInt64s, low: UInt64s) -> tuple[UInt64s, UInt64s]:
    """Return both halves in the order of the hashes, which files of the index have already."""
    ascends = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] >= low[:-1]))
    if ascends.all():
        return high, low
    order = np.lexsort((low, high))
    return high[order], low[order]


def _spread(high: UInt64s) -> tuple[np.uint64, int]:
    """Return the least of sorted numbers, and by how many bits what exceeds it is shifted to number its group."""
    if not len(high):
        return np.uint64(0), 0
    extent, wanted = int(high[-1]) - int(high[0]), max(1, len(high) // _KEYS_OF_A_GROUP)
    return high[0], max(0, extent.bit_length() - wanted.bit_length())


def _sealed(content: bytes) -> bytes:
    checksum = zlib.crc32(content[_BYTES_BEFORE_CONTENT:])
    return content[:4] + struct.pack("<I", checksum) + content[_BYTES_BEFORE_CONTENT:]


def _opened(content: bytes | memoryview) -> tuple[int, np.uint64, int, UInt8s, Fingerprints]:
    """Return the number of keys, the least high half, the shift, the sizes of the groups and the fingerprints."""
    if len(content) < _HEADER.size or content[:4] != _MAGIC:
        raise CorruptionError("a filter of the key index is none")
    _, checksum, keys, groups, least, shift = _HEADER.unpack_from(content)
    if zlib.crc32(memoryview(content)[_BYTES_BEFORE_CONTENT:]) != checksum:
        raise CorruptionError("a filter of the key index is not as it was written")
    sizes = np.frombuffer(content, dtype=np.uint8, count=groups, offset=_HEADER.size)
    at, held = _HEADER.size + groups, keys if groups else 0
    lower = np.frombuffer(content, dtype="<u2", count=held, offset=at)
    higher = np.frombuffer(content, dtype=np.uint8, offset=at + lower.nbytes)
    return keys, np.uint64(least), shift, sizes, (lower, higher)
