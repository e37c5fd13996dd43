"""Test that the fields of a binary COPY are found and rendered as PostgreSQL does, and that no other byte is read."""

import struct
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import plain_text
from makewhole.model.errors import TransientError
from makewhole.native.byte_strings import Content
from makewhole.postgres.read.copy_binary import render, walk
from makewhole.postgres.read.copy_binary.render import Fields, Rule
from makewhole.postgres.read.copy_binary.walk import RowWalk
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

Values = Sequence[bytes | None]
HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"
INT64S = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent, Context(prec=100)),
    st.integers(-(10**12), 10**12),
    st.integers(-30, 30),
)

KINDS = [
    render.INTEGER,
    render.NUMERIC,
    render.ROUNDED,
    render.TRIMMED,
    render.FINITE,
    render.UUID,
    render.BOOLEAN,
    render.MOMENT,
    render.PLACE,
]


def field(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def row(*values: bytes | None) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(field(value) for value in values)


def column(values: Values) -> Fields:
    """Return fields that stand behind each other, with nothing around them."""
    content = Content(b"".join(value or b"" for value in values) or b"\x00")
    lengths = np.array([-1 if value is None else len(value) for value in values], dtype=np.int32)
    starts = np.cumsum(np.maximum(lengths, 0), dtype=np.int32) - np.maximum(lengths, 0)
    return Fields(content.bytes, starts.astype(np.int32), lengths)


def texts(kind: int, values: Values, scale: int = 0) -> list[str | None]:
    text, begins, sizes = render.render(Rule(kind, scale), column(values))
    return [
        None if size < 0 else bytes(text[begin : begin + size]).decode()
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)
    ]


def numeric(number: Decimal) -> bytes:
    """Return a number as `numeric_send` writes it."""
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xF000 if number < 0 else 0xD000
        return struct.pack(">HhHH", 0, 0, sign, 0)
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    digits = whole.zfill(-(-len(whole) // 4) * 4), fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int("".join(digits)[at : at + 4]) for at in range(0, len("".join(digits)), 4)]
    weight = len(digits[0]) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups = groups[:-1]
    sign = 0x4000 if groups and number < 0 else 0
    return struct.pack(f">HhHH{len(groups)}H", len(groups), weight if groups else 0, sign, len(fraction), *groups)


def without_sign_of_zero(number: Decimal) -> str:
    return format(number.copy_abs() if number == 0 else number, "f")


@settings(deadline=None)
@given(numbers=st.lists(INT64S))
def test_integers_of_every_size_are_written_in_digits(numbers: list[int]) -> None:
    fitting = [
        (number, code) for number in numbers for code in "hiq" if -(2 ** (8 * struct.calcsize(code) - 1)) <= number
    ]
    sized = [(number, code) for number, code in fitting if number < 2 ** (8 * struct.calcsize(code) - 1)]
    values = [struct.pack(f">{code}", number) for number, code in sized]

    assert texts(render.INTEGER, [*values, None]) == [*(str(number) for number, _ in sized), None]
    assert texts(render.INTEGER, values, 2) == [f"{number}.00" for number, _ in sized]


@settings(max_examples=examples(300), deadline=None)
@given(numbers=st.lists(NUMBERS), scale=st.integers(0, 12))
def test_numerics_are_written_as_they_are_rounded_and_trimmed(numbers: list[Decimal], scale: int) -> None:
    values = [numeric(number) for number in numbers]
    exact = Context(prec=200)
    rounded = [number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, exact) for number in numbers]

    assert texts(render.NUMERIC, values) == [without_sign_of_zero(number) for number in numbers]
    assert texts(render.ROUNDED, values, scale) == [without_sign_of_zero(number) for number in rounded]
    for kind in (render.TRIMMED, render.FINITE):
        assert texts(kind, values) == [plain_text(number) for number in numbers]


def test_what_is_no_number_has_a_word_of_its_own_and_is_no_key() -> None:
    values = [numeric(Decimal(word)) for word in ("NaN", "Infinity", "-Infinity")]

    for kind in (render.NUMERIC, render.ROUNDED, render.TRIMMED):
        assert texts(kind, values, 2) == ["NaN", "Infinity", "-Infinity"]
    assert texts(render.FINITE, values) == [None, None, None]


def test_the_longest_numeric_is_written_in_full() -> None:
    most = struct.pack(">HhHH2H", 2, 32767, 0x4000, 16383, 9999, 1)

    (text,) = texts(render.NUMERIC, [most])

    assert text == "-99990001" + "0" * (131072 - 8) + "." + "0" * 16383


@settings(deadline=None)
@given(numbers=st.lists(INT64S | st.integers(2**63 - 946_684_800_000_001, 2**63 - 2)))
def test_moments_are_microseconds_since_1970_whatever_the_year(numbers: list[int]) -> None:
    values = [struct.pack(">q", number) for number in numbers if abs(number) < 2**63 - 1]
    since_1970 = [number + 946_684_800_000_000 for number in numbers if abs(number) < 2**63 - 1]

    read, is_valid = render.read_numbers(render.TIME, column([*values, None]))

    assert texts(render.MOMENT, values) == [str(number) for number in since_1970]
    assert is_valid.tolist() == [*(number < 2**63 for number in since_1970), False]
    assert read.tolist() == [*(number if number < 2**63 else 0 for number in since_1970), 0]


def test_endless_moments_say_so_and_are_no_times() -> None:
    endless = [struct.pack(">q", number) for number in (2**63 - 1, -(2**63))]
    moment = datetime(2013, 1, 1, 5, tzinfo=UTC) - datetime(2000, 1, 1, tzinfo=UTC)

    assert texts(render.MOMENT, endless) == ["!infinity", "!-infinity"]
    values = [*endless, struct.pack(">q", moment // timedelta(microseconds=1)), None]
    numbers, is_valid = render.read_numbers(render.TIME, column(values))
    assert is_valid.tolist() == [False, False, True, False]
    assert numbers[2] == 1_357_016_400_000_000


@settings(deadline=None)
@given(values=st.lists(st.uuids()), places=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1))))
def test_uuids_booleans_and_places_are_written_as_casts_write_them(
    values: list[uuid.UUID], places: list[tuple[int, int]]
) -> None:
    assert texts(render.UUID, [value.bytes for value in values]) == [str(value) for value in values]
    assert texts(render.BOOLEAN, [b"\x00", b"\x01", None]) == ["false", "true", None]
    assert texts(render.PLACE, [struct.pack(">IH", *place) for place in places]) == [f"({a},{b})" for a, b in places]


@settings(deadline=None)
@given(numbers=st.lists(INT64S))
def test_numbers_are_read_with_their_sign(numbers: list[int]) -> None:
    values = [*(struct.pack(">q", number) for number in numbers), struct.pack(">h", -2), struct.pack(">i", -3), None]

    read, is_valid = render.read_numbers(render.NUMBER, column(values))

    assert read.tolist() == [*numbers, -2, -3, 0]
    assert is_valid.tolist() == [*[True] * len(numbers), True, True, False]


@settings(max_examples=examples(100), deadline=None)
@pytest.mark.parametrize("kind", KINDS)
@given(values=st.lists(st.none() | st.binary(max_size=18), max_size=4))
def test_random_bytes_are_read_within_their_field_or_refused(kind: int, values: list[bytes | None]) -> None:
    """With every index checked: a byte outside an array would raise IndexError."""
    with bounds_checked(render):
        for scale in (0, 3):
            try:
                rendered = texts(kind, values, scale)
            except ValueError as error:
                assert str(error) == "a field is no value of its column's type"
            else:
                assert [text is None for text in rendered][: len(values)].count(False) <= len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_another_length_is_refused(kind: int) -> None:
    for length in {0, 1, 3, 5, 7, 9, 15, 17} - ({1} if kind == render.BOOLEAN else set()):
        with pytest.raises(ValueError, match="no value of its column's type"):
            render.render(Rule(kind), column([bytes(length)]))
    for kind_of_number in (render.NUMBER, render.TIME):
        with pytest.raises(ValueError, match="no value of its column's type"):
            render.read_numbers(kind_of_number, column([bytes(3)]))


# Rows in chunks


def fields_of(chunks: Sequence[bytes], fields: int) -> list[tuple[bytes | None, ...]]:
    written: list[tuple[bytes | None, ...]] = []
    reader = RowWalk(fields)
    for chunk in chunks:
        rows = reader.rows(chunk)
        for at in range(len(rows)):
            places = [(int(rows.starts[f, at]), int(rows.lengths[f, at])) for f in range(fields)]
            raw = bytes(rows.content.bytes)
            written.append(tuple(None if size < 0 else raw[start : start + size] for start, size in places))
    assert reader.is_ended
    return written


@settings(max_examples=examples(200), deadline=None)
@given(
    rows=st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=3))),
    size=st.integers(1, 40),
)
def test_rows_are_the_same_wherever_the_chunks_are_cut(rows: list[tuple[bytes | None, ...]], size: int) -> None:
    text = HEADER + b"".join(row(*fields) for fields in rows) + TRAILER
    chunks = [text[at : at + size] for at in range(0, len(text), size)]

    with bounds_checked(walk):
        assert fields_of(chunks, 2) == rows


def test_a_header_with_an_extension_is_passed_over() -> None:
    header = HEADER[:-4] + struct.pack(">i", 3) + b"abc"

    assert fields_of([header + row(b"x") + TRAILER], 1) == [(b"x",)]


@pytest.mark.parametrize(
    "text",
    [
        b"PGCOPX",
        HEADER + row(b"x", b"y"),
        HEADER + struct.pack(">Hi", 1, -2),
        HEADER + row(b"x") + TRAILER + b"more",
        HEADER + struct.pack(">H", 0xFFFE),
    ],
)
def test_what_is_no_such_copy_is_refused(text: bytes) -> None:
    with pytest.raises(TransientError, match="what PostgreSQL sent is not the rows that it was asked for; try again"):
        RowWalk(1).rows(text)


def test_nothing_may_follow_the_end() -> None:
    reader = RowWalk(1)
    reader.rows(HEADER + TRAILER)

    with pytest.raises(TransientError, match="not the rows that it was asked for"):
        reader.rows(row(b"x"))


def test_rows_that_were_cut_off_have_no_end() -> None:
    reader = RowWalk(1)

    assert len(reader.rows(HEADER + row(b"x") + row(b"y")[:-1])) == 1
    assert not reader.is_ended
