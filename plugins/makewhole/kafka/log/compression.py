"""Decompress record batches through Arrow, so that no further codec package is needed.

Decompression stops at a limit: a few kilobytes can claim to be gigabytes.
"""

from typing import Literal

import pyarrow as pa

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)
_Streamed = Literal["gzip", "lz4", "zstd"]
_STREAMED: dict[int, _Streamed] = {_GZIP: "gzip", _LZ4: "lz4", _ZSTD: "zstd"}
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
BATCH_LIMIT_BYTES = 256 << 20  # some four times as much is held while it is decoded
_SMALLEST_ROOM_BYTES, _LIKELY_RATIO = 64 << 10, 8
BytesLike = bytes | memoryview


class CodecError(Exception):
    """The compressed part of a batch cannot be read; the text says why, without any of its bytes."""


def decompress(codec: int, data: memoryview, *, limit_bytes: int = BATCH_LIMIT_BYTES) -> BytesLike:
    """Return the records of a batch, uncompressed.

    Raises:
        CodecError: unknown codec, damaged data, or more than `limit_bytes` of it.
    """
    if codec == _NONE:
        return data
    try:
        if codec in _STREAMED:
            return _stream(_STREAMED[codec], data, limit_bytes)
        if codec == _SNAPPY:
            return _snappy(data, limit_bytes)
    except (OSError, ValueError, IndexError, pa.ArrowException) as error:
        raise CodecError(f"damaged {_STREAMED.get(codec, 'snappy')} data") from error
    raise CodecError(f"unknown compression codec {codec}")


def _stream(name: _Streamed, data: memoryview, limit_bytes: int) -> BytesLike:
    """Decompress into a buffer of the likely size, then of twice as much: clearing one of the limit is slow."""
    parts: list[memoryview] = []
    total, room = 0, max(_SMALLEST_ROOM_BYTES, _LIKELY_RATIO * len(data))
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
        while total <= limit_bytes:
            room = min(room, limit_bytes + 1 - total)
            parts.append(memoryview(stream.read_buffer(room)))
            total += len(parts[-1])
            if len(parts[-1]) < room:
                break
            room = 2 * total
    return _require_within(parts[0] if len(parts) == 1 else b"".join(parts), limit_bytes)


def _snappy(data: memoryview, limit_bytes: int) -> bytes:
    """Decompress raw snappy, or the framing of the Java library: blocks, each behind its length (xerial)."""
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(data, limit_bytes)
    blocks, position, total = [], _XERIAL_HEADER_BYTES, 0
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4
        block = _snappy_block(data[position : position + length], limit_bytes - total)
        position += length
        total += len(block)
        blocks.append(block)
    return b"".join(blocks)


def _snappy_block(data: memoryview, limit_bytes: int) -> bytes:
    size, shift, position = 0, 0, 0
    while True:
        byte = data[position]
        size |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            break
    if size > limit_bytes:
        raise CodecError(f"more than {limit_bytes} bytes when decompressed")
    text: bytes = pa.Codec("snappy").decompress(pa.py_buffer(data), decompressed_size=size, asbytes=True)
    return text


def _require_within(text: BytesLike, limit_bytes: int) -> BytesLike:
    if len(text) > limit_bytes:
        raise CodecError(f"more than {limit_bytes} bytes when decompressed")
    return text
