"""Test which offset a sink reads next by the rows of its own progress, and when they say nothing."""

import pytest

from makewhole.model.places.sink_progress import OffsetMeaning
from makewhole.tables.progress import ProgressRows
from makewhole.window.readers.hop_offsets import ProgressFault, UnknownProgress, next_offset

pytestmark = pytest.mark.unit

NEXT, LAST = OffsetMeaning.NEXT, OffsetMeaning.LAST


def one(value: str | None) -> ProgressRows:
    return ProgressRows(rows=1, offsets=0 if value is None else 1, least=value, greatest=value)


@pytest.mark.parametrize(
    ("value", "means", "offset"),
    [("6", NEXT, 6), ("6", LAST, 7), ("0", NEXT, 0), ("-1", LAST, 0), ("6.00", NEXT, 6), ("6E+2", NEXT, 600)],
)
def test_the_offset_of_one_row_is_the_next_one_or_the_last_one_done(
    value: str, means: OffsetMeaning, offset: int
) -> None:
    assert next_offset(one(value), means) == offset


@pytest.mark.parametrize(
    ("value", "means"), [("-1", NEXT), ("-2", LAST), ("6.5", NEXT), ("NaN", NEXT), ("Infinity", LAST)]
)
def test_a_number_that_is_no_offset_says_nothing(value: str, means: OffsetMeaning) -> None:
    assert next_offset(one(value), means) == UnknownProgress(
        fault=ProgressFault.NO_OFFSET, rows=1, least=value, greatest=value
    )


def test_no_row_and_no_value_say_nothing() -> None:
    assert next_offset(None, NEXT) == UnknownProgress(fault=ProgressFault.NO_ROW)
    assert next_offset(one(None), NEXT) == UnknownProgress(fault=ProgressFault.NO_VALUE, rows=1)


def test_several_rows_say_nothing_even_where_they_agree() -> None:
    for least, greatest in (("5", "9"), ("7", "7"), (None, None)):
        rows = ProgressRows(rows=2, offsets=0 if least is None else 2, least=least, greatest=greatest)
        offset = next_offset(rows, NEXT)
        assert isinstance(offset, UnknownProgress)
        assert (offset.fault, offset.rows) == (ProgressFault.SEVERAL_ROWS, 2)
