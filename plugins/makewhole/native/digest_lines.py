"""Add up the XXH3 hashes of the digest's lines, `<key hash>|matched|<row hash>`, without making the lines as texts.

A line has 42 to 61 bytes. XXH3 with 128 bits mixes such a text in two rounds: https://github.com/Cyan4973/xxHash,
`doc/xxhash_spec.md`, inputs of 17 to 128 bytes.
"""

import sys

import numpy as np

from makewhole.native.arrays import UInt8s, UInt64s, read_only
from makewhole.native.compiled import compiled, inlined

_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
        "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    ),
    dtype="<u8",
)
_PRIME_1, _PRIME_2, _PRIME_4, _AVALANCHE = (
    np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63, 0x165667919E3779F9)
)
_NONE, _ONE, _TEN, _ALL, _32, _37, _64 = (np.uint64(number) for number in (0, 1, 10, 2**32 - 1, 32, 37, 64))
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_ZERO = np.uint8(ord("0"))
_LINE = np.frombuffer(b"0" * 32 + b"|matched|" + b"0" * 23, dtype=np.uint8)
_FIRST_DIGIT, _MOST_DIGITS = 41, 20


def sum_of_matched_lines(key_hi: UInt64s, key_lo: UInt64s, row_hash: UInt64s) -> int:
    """Return the sum of the hashes of the lines of matched keys, modulo 2^128."""
    if sys.byteorder != "little":
        raise NotImplementedError("lines are read as words of a little-endian machine")
    line, digits, total = _LINE.copy(), np.zeros(_MOST_DIGITS, dtype=np.uint8), np.zeros(2, dtype=np.uint64)
    key_hi, key_lo, row_hash = (read_only(column) for column in (key_hi, key_lo, row_hash))
    _add_up(key_hi, key_lo, row_hash, line, line.view(np.uint64), digits, total)
    return (int(total[1]) << 64) | int(total[0])


@compiled
def _add_up(
    key_hi: UInt64s, key_lo: UInt64s, row_hash: UInt64s, line: UInt8s, words: UInt64s, digits: UInt8s, total: UInt64s
) -> None:
    """Add the hash of each line to `total`, whose first half is the lower one. `words` is the memory of `line`."""
    for row in range(len(key_hi)):
        _write_hex(key_hi[row], line, 0)
        _write_hex(key_lo[row], line, 16)
        length = _FIRST_DIGIT + _write_decimal(row_hash[row], line, digits)
        low, high = _hash(words, length)
        total[0] += low
        total[1] += high + (_ONE if total[0] < low else _NONE)


@inlined
def _write_hex(number: np.uint64, line: UInt8s, at: int) -> None:
    for index in range(16):
        line[at + index] = _HEX[(number >> np.uint64(60 - 4 * index)) & np.uint64(15)]


@inlined
def _write_decimal(number: np.uint64, line: UInt8s, digits: UInt8s) -> int:
    """Write a number in its place; return how many digits it has."""
    count = 0
    while count == 0 or number != _NONE:
        rest = number // _TEN
        digits[count] = _ZERO + np.uint8(number - rest * _TEN)
        number = rest
        count += 1
    for index in range(count):
        line[_FIRST_DIGIT + index] = digits[count - 1 - index]
    return count


@inlined
def _hash(words: UInt64s, length: int) -> tuple[np.uint64, np.uint64]:
    """Return the lower and the upper half of the hash of a line."""
    low, high = np.uint64(length) * _PRIME_1, _NONE
    for first in (16, 0):
        last, at = length - 16 - first, first // 4
        word_1, word_2 = _word(words, first), _word(words, first + 8)
        word_3, word_4 = _word(words, last), _word(words, last + 8)
        low = (low + _folded_product(word_1 ^ _SECRET[at], word_2 ^ _SECRET[at + 1])) ^ (word_3 + word_4)
        high = (high + _folded_product(word_3 ^ _SECRET[at + 2], word_4 ^ _SECRET[at + 3])) ^ (word_1 + word_2)
    mixed = low * _PRIME_1 + high * _PRIME_4 + np.uint64(length) * _PRIME_2
    return _avalanched(low + high), _NONE - _avalanched(mixed)


@inlined
def _avalanched(number: np.uint64) -> np.uint64:
    number = (number ^ (number >> _37)) * _AVALANCHE
    return number ^ (number >> _32)


@inlined
def _word(words: UInt64s, at: int) -> np.uint64:
    """Return the eight bytes of the line from a place on."""
    number, bits = at >> 3, np.uint64((at & 7) << 3)
    word: np.uint64 = words[number]
    if bits != _NONE:
        word = (word >> bits) | (words[number + 1] << (_64 - bits))
    return word


@inlined
def _folded_product(factor: np.uint64, other: np.uint64) -> np.uint64:
    """Return the two halves of a product of 128 bits, one XOR the other."""
    a, b, c, d = factor >> _32, factor & _ALL, other >> _32, other & _ALL
    low, crossed = b * d, a * d
    middle = (low >> _32) + (crossed & _ALL) + b * c
    high = a * c + (crossed >> _32) + (middle >> _32)
    return high ^ ((middle << _32) | (low & _ALL))
