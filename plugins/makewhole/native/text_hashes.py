"""Hash columns of short texts with XXH3, without making an Arrow text of each row first.

XXH3 with 64 and with 128 bits, of texts up to 240 and 128 bytes: https://github.com/Cyan4973/xxHash,
`doc/xxhash_spec.md`. Places in a text are unsigned: then the compiler reads eight bytes at once, where it would ask for
each of them whether a negative place counts from the end.
"""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from makewhole.native.arrays import ArrowArray, Bools, Int32s, Int64s, UInt8s, UInt64s, read_only
from makewhole.native.compiled import compiled, inlined

MOST_KEY_BYTES, MOST_ROW_BYTES = 128, 240
"""The longest texts that are hashed here: a key, and the columns of a row, each behind its length."""

_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
        "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
        "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
        "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
        "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    ),
    dtype="<u8",
)
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _AVALANCHE, _MIX = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x165667919E3779F9,
        0x9FB21C651E98DF25,
    )
)
_PRIME_32 = np.uint64(0x85EBCA77)
_ALL_32 = np.uint64(2**32 - 1)
_INLINE, _BESIDE_LENGTH, _MOST_COPIED = 12, 4, 4
_SLACK = 12  # short texts are written with all bytes of their view
_NOTHING = np.empty(0, dtype=np.uint8)
_ZERO, _TEN, _COLON, _COMMA, _NULL = 48, 10, 58, 44, 126


class TextViews(NamedTuple):
    """A column of Arrow's string views: each row's four numbers, the same as bytes, the texts that are longer than a
    view has room for, where in them each of the column's buffers begins, and which rows are not null."""

    numbers: Int32s
    bytes: UInt8s
    content: UInt8s
    buffers: Int64s
    is_valid: Bools

    @classmethod
    def of(cls, column: ArrowArray) -> "TextViews | None":
        """Take them from a column of string views; None where its buffers hold far more than its texts, as those of a
        few rows of many do: they are copied."""
        buffers = [np.frombuffer(memoryview(one), dtype=np.uint8) for one in column.buffers()[2:]]
        numbers = np.frombuffer(column.buffers()[1], dtype=np.int32).reshape(-1, 4)[column.offset :][: len(column)]
        edges = np.cumsum([0, *(len(one) for one in buffers)], dtype=np.int64)
        if len(buffers) > 1 and edges[-1] > _MOST_COPIED * max(int(numbers[:, 0].sum(dtype=np.int64)), _INLINE):
            return None
        content = buffers[0] if len(buffers) == 1 else np.concatenate([_NOTHING, *buffers])
        is_valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(len(column), "?")
        return cls(
            read_only(numbers), read_only(numbers).view(np.uint8).reshape(-1), read_only(content), edges, is_valid
        )


def hash_keys(keys: TextViews) -> tuple[UInt64s, UInt64s] | None:
    """Return the two halves of the hash of each text, with 128 bits; None where a text is null or too long."""
    _require_little_endian()
    if not keys.is_valid.all() or keys.numbers[:, 0].max(initial=0) > MOST_KEY_BYTES:
        return None
    high, low = np.empty((2, len(keys.numbers)), dtype=np.uint64)
    _hash_views(tuple(keys), high, low)
    return high, low


def hash_rows(columns: Sequence[TextViews]) -> UInt64s | None:
    """Return the hash of each row's texts with 64 bits, each behind its length: `2:UA,~,0:`, `~` being null. None where
    a row is too long."""
    _require_little_endian()
    begins, ends, text = _joined(columns)
    if (ends - begins).max(initial=0) > MOST_ROW_BYTES:
        return None
    hashes = np.empty(len(begins), dtype=np.uint64)
    _hash_64(text, begins, ends, hashes)
    return hashes


def _require_little_endian() -> None:
    if sys.byteorder != "little":
        raise NotImplementedError("texts are read as words of a little-endian machine")


def _joined(columns: Sequence[TextViews]) -> tuple[UInt64s, UInt64s, UInt8s]:
    """Return where each row's text begins and ends, and the texts."""
    room = np.full(len(columns[0].numbers) + 1, _SLACK, dtype=np.uint64)
    room[0] = 0
    for at, column in enumerate(columns):
        _add_room(column.numbers, column.is_valid, at > 0, room)
    edges = np.cumsum(room, dtype=np.uint64)
    begins, ends = edges[:-1], edges[:-1].copy()
    text = np.empty(int(edges[-1]), dtype=np.uint8)
    for at, column in enumerate(columns):
        _append(tuple(column), at > 0, text, ends)
    return begins, ends, text


@compiled
def _add_room(numbers: Int32s, is_valid: Bools, is_later: bool, room: UInt64s) -> None:
    """Add to each row's room, the first of which is that of no row, the bytes of a column's text and its length."""
    for row in range(len(numbers)):
        length = int(numbers[row, 0])
        length = length + 1 + _digits(length) if is_valid[row] else 1
        room[row + 1] += np.uint64(length + (1 if is_later else 0))


@inlined
def _digits(number: int) -> int:
    digits, rest = 1, number // _TEN
    while rest:
        digits, rest = digits + 1, rest // _TEN
    return digits


@compiled
def _append(of_column: tuple[Any, ...], is_later: bool, text: UInt8s, ends: UInt64s) -> None:
    """Write a column's texts behind what each row has."""
    column = TextViews(*of_column)
    for row in range(len(column.numbers)):
        at = ends[row]
        if is_later:
            text[at] = _COMMA
            at += np.uint64(1)
        if not column.is_valid[row]:
            text[at] = _NULL
            ends[row] = at + np.uint64(1)
            continue
        length = int(column.numbers[row, 0])
        at = _write_length(text, at, length)
        if length <= _INLINE:
            view = np.uint64(16 * row + _BESIDE_LENGTH)
            _write_word(text, at, _word(column.bytes, view))
            _write_half(text, at + np.uint64(8), _half(column.bytes, view + np.uint64(8)))
        else:
            _copy(column.content, _start(column, row), text, at, length)
        ends[row] = at + np.uint64(length)


@inlined
def _start(column: TextViews, row: int) -> np.uint64:
    return np.uint64(column.buffers[column.numbers[row, 2]] + column.numbers[row, 3])


@inlined
def _copy(content: UInt8s, start: np.uint64, text: UInt8s, at: np.uint64, length: int) -> None:
    for word in range(length >> 3):
        _write_word(text, at + np.uint64(8 * word), _word(content, start + np.uint64(8 * word)))
    for index in range(length & ~7, length):
        text[at + np.uint64(index)] = content[start + np.uint64(index)]


@inlined
def _write_word(text: UInt8s, at: np.uint64, word: np.uint64) -> None:
    _write_half(text, at, word)
    _write_half(text, at + np.uint64(4), word >> np.uint64(32))


@inlined
def _write_half(text: UInt8s, at: np.uint64, half: np.uint64) -> None:
    text[at] = np.uint8(half)
    text[at + np.uint64(1)] = np.uint8(half >> np.uint64(8))
    text[at + np.uint64(2)] = np.uint8(half >> np.uint64(16))
    text[at + np.uint64(3)] = np.uint8(half >> np.uint64(24))


@inlined
def _write_length(text: UInt8s, at: np.uint64, length: int) -> np.uint64:
    """Write the length and a colon; return their end."""
    if length < _TEN:
        text[at] = _ZERO + length
        text[at + np.uint64(1)] = _COLON
        return at + np.uint64(2)
    end = at + np.uint64(_digits(length))
    place, rest = end, length
    while place > at:
        place -= np.uint64(1)
        text[place] = _ZERO + rest % _TEN
        rest //= _TEN
    text[end] = _COLON
    return end + np.uint64(1)


@compiled
def _hash_64(text: UInt8s, begins: UInt64s, ends: UInt64s, hashes: UInt64s) -> None:
    for row in range(len(begins)):
        hashes[row] = _hashed_64(text, begins[row], ends[row] - begins[row])


@inlined
def _hashed_64(text: UInt8s, at: np.uint64, length: np.uint64) -> np.uint64:
    last = at + length
    if length > np.uint64(16):
        return _long_64(text, at, length)
    if length > np.uint64(8):
        one = _word(text, at) ^ (_SECRET[3] ^ _SECRET[4])
        other = _word(text, last - np.uint64(8)) ^ (_SECRET[5] ^ _SECRET[6])
        return _avalanched(length + _swapped(one) + other + _folded(one, other))
    if length >= np.uint64(4):
        keyed = _half(text, last - np.uint64(4)) + (_half(text, at) << np.uint64(32))
        keyed ^= _SECRET[1] ^ _SECRET[2]
        keyed ^= _rotated(keyed, np.uint64(49)) ^ _rotated(keyed, np.uint64(24))
        keyed *= _MIX
        keyed = (keyed ^ ((keyed >> np.uint64(35)) + length)) * _MIX
        return np.uint64(keyed ^ (keyed >> np.uint64(28)))
    if length > np.uint64(0):
        return _finished(_few(text, at, length) ^ _flip(_SECRET[0]))
    return _finished(_SECRET[7] ^ _SECRET[8])


@inlined
def _long_64(text: UInt8s, at: np.uint64, length: np.uint64) -> np.uint64:
    total = length * _PRIME_1
    last = at + length - np.uint64(16)
    if length <= np.uint64(128):
        for step in range((int(length) - 1) >> 5, -1, -1):
            away = np.uint64(16 * step)
            total += _mixed(text, at + away, _SECRET[4 * step], _SECRET[4 * step + 1])
            total += _mixed(text, last - away, _SECRET[4 * step + 2], _SECRET[4 * step + 3])
        return _avalanched(total)
    for step in range(8):
        total += _mixed(text, at + np.uint64(16 * step), _SECRET[2 * step], _SECRET[2 * step + 1])
    total = _avalanched(total)
    for step in range(8, int(length) >> 4):
        place = 16 * (step - 8) + 3
        total += _mixed(text, at + np.uint64(16 * step), _secret(place), _secret(place + 8))
    return _avalanched(total + _mixed(text, last, _secret(119), _secret(127)))


@compiled
def _hash_views(of_column: tuple[Any, ...], high: UInt64s, low: UInt64s) -> None:
    column = TextViews(*of_column)
    for row in range(len(column.numbers)):
        length = np.uint64(column.numbers[row, 0])
        if length <= _INLINE:
            high[row], low[row] = _hashed_128(column.bytes, np.uint64(16 * row + _BESIDE_LENGTH), length)
        else:
            high[row], low[row] = _hashed_128(column.content, _start(column, row), length)


@inlined
def _hashed_128(text: UInt8s, at: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower half of the hash of a text."""
    if length > np.uint64(16):
        return _long_128(text, at, length)
    if length > np.uint64(8):
        return _middling_128(text, at, length)
    if length >= np.uint64(4):
        one, other = _half(text, at), _half(text, at + length - np.uint64(4))
        keyed = (one + (other << np.uint64(32))) ^ (_SECRET[2] ^ _SECRET[3])
        high, low = _product(keyed, _PRIME_1 + (length << np.uint64(2)))
        high += low << np.uint64(1)
        low ^= high >> np.uint64(3)
        low = (low ^ (low >> np.uint64(35))) * _MIX
        return _avalanched(high), low ^ (low >> np.uint64(28))
    if length > np.uint64(0):
        few = _few(text, at, length)
        other = _swapped(few) >> np.uint64(32)
        turned = ((other << np.uint64(13)) | (other >> np.uint64(19))) & _ALL_32
        return _finished(turned ^ _flip(_SECRET[1])), _finished(few ^ _flip(_SECRET[0]))
    return _finished(_SECRET[10] ^ _SECRET[11]), _finished(_SECRET[8] ^ _SECRET[9])


@inlined
def _middling_128(text: UInt8s, at: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Do as `_hashed_128` for 9 to 16 bytes."""
    one, other = _word(text, at), _word(text, at + length - np.uint64(8))
    high, low = _product(one ^ other ^ (_SECRET[4] ^ _SECRET[5]), _PRIME_1)
    low += (length - np.uint64(1)) << np.uint64(54)
    other ^= _SECRET[6] ^ _SECRET[7]
    high += other + (other & _ALL_32) * (_PRIME_32 - np.uint64(1))
    low ^= _swapped(high)
    above, below = _product(low, _PRIME_2)
    return _avalanched(above + high * _PRIME_2), _avalanched(below)


@inlined
def _long_128(text: UInt8s, at: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Do as `_hashed_128` for 17 to 128 bytes."""
    low, high = length * _PRIME_1, np.uint64(0)
    last = at + length - np.uint64(16)
    for step in range((int(length) - 1) >> 5, -1, -1):
        one, other = at + np.uint64(16 * step), last - np.uint64(16 * step)
        low += _mixed(text, one, _SECRET[4 * step], _SECRET[4 * step + 1])
        low ^= _word(text, other) + _word(text, other + np.uint64(8))
        high += _mixed(text, other, _SECRET[4 * step + 2], _SECRET[4 * step + 3])
        high ^= _word(text, one) + _word(text, one + np.uint64(8))
    mixed = low * _PRIME_1 + high * _PRIME_4 + length * _PRIME_2
    return np.uint64(0) - _avalanched(mixed), _avalanched(low + high)


@inlined
def _few(text: UInt8s, at: np.uint64, length: np.uint64) -> np.uint64:
    """Return one to three bytes and their number as one number."""
    first, last = np.uint64(text[at]), np.uint64(text[at + length - np.uint64(1)])
    middle = np.uint64(text[at + (length >> np.uint64(1))])
    return (first << np.uint64(16)) | (middle << np.uint64(24)) | last | (length << np.uint64(8))


@inlined
def _flip(secret: np.uint64) -> np.uint64:
    """Return the two halves of a word, one XOR the other."""
    return (secret & _ALL_32) ^ (secret >> np.uint64(32))


@inlined
def _mixed(text: UInt8s, at: np.uint64, secret: np.uint64, next_secret: np.uint64) -> np.uint64:
    return _folded(_word(text, at) ^ secret, _word(text, at + np.uint64(8)) ^ next_secret)


@inlined
def _secret(at: int) -> np.uint64:
    """Return the eight bytes of the secret from a place on that is no multiple of eight."""
    bits = np.uint64((at & 7) << 3)
    return np.uint64((_SECRET[at >> 3] >> bits) | (_SECRET[(at >> 3) + 1] << (np.uint64(64) - bits)))


@inlined
def _half(text: UInt8s, at: np.uint64) -> np.uint64:
    """Return four bytes as a number."""
    return (
        np.uint64(text[at])
        | (np.uint64(text[at + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(text[at + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(text[at + np.uint64(3)]) << np.uint64(24))
    )


@inlined
def _word(text: UInt8s, at: np.uint64) -> np.uint64:
    """Return eight bytes as a number."""
    return _half(text, at) | (_half(text, at + np.uint64(4)) << np.uint64(32))


@inlined
def _swapped(word: np.uint64) -> np.uint64:
    """Return a word with its bytes in reverse order."""
    swapped = np.uint64(0)
    for _ in range(8):
        swapped = (swapped << np.uint64(8)) | (word & np.uint64(255))
        word >>= np.uint64(8)
    return swapped


@inlined
def _rotated(word: np.uint64, bits: np.uint64) -> np.uint64:
    return (word << bits) | (word >> (np.uint64(64) - bits))


@inlined
def _avalanched(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(37))) * _AVALANCHE
    return word ^ (word >> np.uint64(32))


@inlined
def _finished(word: np.uint64) -> np.uint64:
    """Do as `_avalanched` for texts of up to three bytes, which the older XXH64 finishes."""
    word = (word ^ (word >> np.uint64(33))) * _PRIME_2
    word = (word ^ (word >> np.uint64(29))) * _PRIME_3
    return word ^ (word >> np.uint64(32))


@inlined
def _folded(one: np.uint64, other: np.uint64) -> np.uint64:
    high, low = _product(one, other)
    return high ^ low


@inlined
def _product(one: np.uint64, other: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower half of a product of 128 bits."""
    a, b, c, d = one >> np.uint64(32), one & _ALL_32, other >> np.uint64(32), other & _ALL_32
    low, crossed = b * d, a * d
    middle = (low >> np.uint64(32)) + (crossed & _ALL_32) + b * c
    high = a * c + (crossed >> np.uint64(32)) + (middle >> np.uint64(32))
    return high, (middle << np.uint64(32)) | (low & _ALL_32)
