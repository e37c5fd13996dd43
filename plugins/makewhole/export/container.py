"""Hold the bytes of an archive outside of its members to those that are written: ZIP leaves room for others there.

A reader of ZIP files looks for the directory from the end of the file, and ignores what stands between members, the
times and comments of members, and the headers before them; another reader goes by these. APPNOTE.TXT of PKWARE, 4.3.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO
from zipfile import ZipInfo

EPOCH = (1980, 1, 1, 0, 0, 0)
MODE = 0o600
_DOS_DATE = (EPOCH[0] - 1980) << 9 | EPOCH[1] << 5 | EPOCH[2]
_VERSION, _UNIX, _DEFLATED, _ZIP64 = 45, 3, 8, 1
_LIMIT, _ELSEWHERE, _MOST_MEMBERS = 2**31 - 1, 2**32 - 1, 2**16 - 1
_MEMBER = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s4B4H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LONG_END = struct.Struct("<4sQ2H2L4Q")
_LONG_END_PLACE = struct.Struct("<4sLQL")


def is_as_written(file: BinaryIO, members: Sequence[ZipInfo]) -> bool:
    """Return whether a file has these members one after the other and their directory, and not a byte more. How a
    member is packed is not looked at."""
    at, places = 0, []
    for member in members:
        header = _member(member)
        file.seek(at)
        if file.read(len(header)) != header:
            return False
        places.append(at)
        at += len(header) + member.compress_size
    file.seek(at)
    directory = b"".join(map(_entry, members, places))
    rest = b"".join([directory, *_end(len(members), at, len(directory))])
    return file.read(len(rest) + 1) == rest


def _member(member: ZipInfo) -> bytes:
    """Return the header before a member, whose sizes are always the long ones."""
    name = member.filename.encode()
    sizes = _long((member.file_size, member.compress_size))
    plain = (b"PK\3\4", _VERSION, 0, _DEFLATED, 0, _DOS_DATE, member.CRC, _ELSEWHERE, _ELSEWHERE)
    return _MEMBER.pack(*plain, len(name), len(sizes)) + name + sizes


def _entry(member: ZipInfo, place: int) -> bytes:
    """Return what the directory has of a member."""
    name, packed, size, long = member.filename.encode(), member.compress_size, member.file_size, list[int]()
    if max(packed, size) > _LIMIT:
        long += [size, packed]
        packed = size = _ELSEWHERE
    if place > _LIMIT:
        long.append(place)
        place = _ELSEWHERE
    extra = _long(long) if long else b""
    plain = (b"PK\1\2", _VERSION, _UNIX, _VERSION, 0, 0, _DEFLATED, 0, _DOS_DATE, member.CRC, packed, size)
    return _ENTRY.pack(*plain, len(name), len(extra), 0, 0, 0, MODE << 16, place) + name + extra


def _long(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<2H{len(numbers)}Q", _ZIP64, 8 * len(numbers), *numbers)


def _end(members: int, place: int, size: int) -> Iterator[bytes]:
    """Yield what stands behind the directory, which begins at a place and has a size in bytes."""
    if members > _MOST_MEMBERS or max(place, size) > _LIMIT:
        size_of_rest = _LONG_END.size - 12
        yield _LONG_END.pack(b"PK\6\6", size_of_rest, _VERSION, _VERSION, 0, 0, members, members, size, place)
        yield _LONG_END_PLACE.pack(b"PK\6\7", 0, place + size, 1)
    members, place, size = min(members, _MOST_MEMBERS), min(place, _ELSEWHERE), min(size, _ELSEWHERE)
    yield _END.pack(b"PK\5\6", 0, 0, members, members, size, place, 0)
