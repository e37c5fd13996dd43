"""Draw damaged inputs from sound ones, by a seed: bytes, words and whole pieces are changed."""

from collections.abc import Sequence
from random import Random

_ODD_BYTES = (b"\x00", b"\xff", b"\x80", b"\x7f", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x7f\xff\xff\xff")
_MOST_CHANGES = 4


def mutated(content: bytes, random: Random, others: Sequence[bytes] = (b"",)) -> bytes:
    """Return the content with a few changes; pieces may come from the others. Rarely it stays as it is."""
    for _ in range(min(random.randrange(_MOST_CHANGES + 1), random.randrange(_MOST_CHANGES + 1)) or 1):
        content = _changed(content, random, others)
    return content


def _changed(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    at = random.randrange(len(content) + 1)
    end = min(len(content), at + random.choice((1, 1, 1, 2, 4, 8, 64)))
    match random.randrange(8):
        case 0 | 1:  # one bit
            flipped = bytes([content[at] ^ (1 << random.randrange(8))]) if at < len(content) else b""
            return content[:at] + flipped + content[at + 1 :]
        case 2:
            return content[:at] + random.randbytes(end - at) + content[end:]
        case 3:
            return content[:at] + content[end:]
        case 4:
            return content[:at] + random.choice(_ODD_BYTES) + content[random.choice((at, end)) :]
        case 5:
            return content[:at] + content[at:end] * random.choice((2, 2, 3, 300)) + content[end:]
        case 6:
            return content[:at]
        case _:
            other = random.choice(others)
            start = random.randrange(len(other) + 1)
            return content[:at] + other[start : start + random.choice((1, 4, 16, 1000))] + content[end:]


def one_byte_changed(content: bytes, random: Random) -> bytes:
    """Return the content, which is not empty, with one byte that is another."""
    at = random.randrange(len(content))
    return content[:at] + bytes([content[at] ^ random.randrange(1, 256)]) + content[at + 1 :]


def packed(pieces: Sequence[bytes | None]) -> bytes:
    """Return pieces as one input: each behind its length, of which the highest says that there is none."""
    return b"".join(b"\xff" * 4 if piece is None else len(piece).to_bytes(4, "big") + piece for piece in pieces)


def unpacked(content: bytes) -> list[bytes | None]:
    """Return the pieces of an input that `packed` has made."""
    pieces: list[bytes | None] = []
    at = 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        at += 4
        if length == 0xFFFFFFFF:
            pieces.append(None)
            continue
        pieces.append(content[at : at + length])
        at += length
    return pieces
