"""Test what is said of a file whose bytes do not come."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

import pytest

from makewhole.file_stores.broken_parts import broken_block

pytestmark = pytest.mark.unit


@dataclass
class Answers:
    """Answers as a client of HDFS does, of a file of 25 bytes in blocks of ten."""

    read_range: Callable[[int, int], bytes]
    length: int = 25
    blocksize: int = 10

    def get_file_info(self, path: str) -> Self:
        return self

    def read(self, path: str) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


def block_of(read_range: Callable[[int, int], bytes], **settings: int) -> str:
    return broken_block(cast(Any, Answers(read_range, **settings)), "/a")


def failing_from(first: int, error: Exception) -> Callable[[int, int], bytes]:
    def read_range(at: int, length: int) -> bytes:
        if at + length > first:
            raise error
        return bytes(length)

    return read_range


@pytest.mark.parametrize("error", [OSError("no block"), RuntimeError("no block")])
def test_the_first_block_that_does_not_come_is_named(error: Exception) -> None:
    assert block_of(failing_from(25, error)) == ""
    assert block_of(failing_from(24, error)) == "block 3 of 3, bytes 20 to 24, of HDFS"
    assert block_of(failing_from(5, error)) == "block 1 of 3, bytes 0 to 9, of HDFS"
    assert block_of(failing_from(0, error), length=0) == ""


def test_a_file_that_goes_while_it_is_read_has_no_broken_block() -> None:
    with pytest.raises(FileNotFoundError):
        block_of(failing_from(20, FileNotFoundError("/a")))
