"""Test that a COPY which ends in any error at all is none that ended."""

import os
from typing import Any

import pytest

from makewhole.postgres.read.copy_text import _Sender

pytestmark = pytest.mark.unit


class _Broken:
    """A session whose cursor fails in a way that is neither the database's nor the pipe's."""

    def cursor(self) -> Any:
        raise MemoryError("no room for a buffer")


def test_an_error_of_any_kind_is_reported_to_the_reader() -> None:
    session: Any = _Broken()
    read_end, write_end = os.pipe()
    sender = _Sender(session, "copy (select 1) to stdout", write_end)

    sender.run()

    assert os.read(read_end, 1) == b""
    os.close(read_end)
    assert isinstance(sender.problem, MemoryError)
