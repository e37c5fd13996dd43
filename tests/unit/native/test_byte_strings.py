"""Hold columns of views to the byte strings that they are of, of every length up to some beyond what a view has."""

import numpy as np
import pyarrow as pa
import pytest

from makewhole.native import byte_strings
from makewhole.native.byte_strings import Blobs, Content
from tests.unit.native.bounds_checks import bounds_checked

pytestmark = pytest.mark.unit

TEXTS = [bytes(range(65, 65 + length)) for length in range(20)]


@pytest.mark.parametrize("last", range(20))
def test_views_are_the_byte_strings_and_nothing_outside_the_content_is_read(last: int) -> None:
    texts: list[bytes | None] = [*TEXTS[:last], None, *TEXTS[last + 1 :], TEXTS[last]]
    lengths = [-1 if text is None else len(text) for text in texts]
    starts = np.cumsum([0, *(max(length, 0) for length in lengths)])[:-1]
    blobs = Blobs(starts=starts.astype(np.int32), lengths=np.array(lengths, dtype=np.int32))

    with bounds_checked(byte_strings):
        column = blobs.views(Content(b"".join(text or b"" for text in texts)))

    column.validate(full=True)
    assert column.to_pylist() == texts
    numbers = np.frombuffer(column.buffers()[1], dtype=np.uint8).reshape(-1, 16)
    assert all(not numbers[row, 4 + max(length, 0) :].any() for row, length in enumerate(lengths) if length <= 12)
    assert blobs.column(Content(b"".join(text or b"" for text in texts))).cast(pa.binary()).to_pylist() == texts
