"""Where records stand: many batches side by side give what each gives alone, whatever is wrong with its neighbours."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.kafka.log import walk
from makewhole.kafka.log.binary_columns import PADDING_BYTES, Blobs, Text
from makewhole.kafka.log.walk import record_places

pytestmark = pytest.mark.unit

Batch = tuple[bytes, int]
"""Records with their lengths, and how many are said to be there."""


def varint(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sound(lengths: list[int]) -> Batch:
    return b"".join(varint(length) + bytes(length) for length in lengths), len(lengths)


def places(batches: list[Batch]) -> list[list[int] | None]:
    """Per batch the places of its records from its own beginning; None where they do not fill it."""
    sizes = np.array([len(data) for data, _ in batches], dtype=np.int64)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    counts = np.array([count for _, count in batches], dtype=np.int64)
    text = b"".join(data for data, _ in batches) + bytes(PADDING_BYTES)
    found, fits = record_places(text, begins, ends, counts)
    assert len(found) == counts[fits].sum()
    parts = iter(np.split(found, np.cumsum(counts[fits])[:-1]) if fits.any() else [])
    return [(next(parts) - begin).tolist() if fit else None for begin, fit in zip(begins.tolist(), fits, strict=True)]


def expected(batch: Batch) -> list[int] | None:
    """Record by record; no more is asked of a batch than that its records fill it."""
    data, count = batch
    if not 0 < count <= len(data) // 7:
        return None
    position, found = 0, []
    for _ in range(count):
        value, shift, begin = 0, 0, position
        while True:
            if position >= len(data):
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value & 1 or position + (value >> 1) > len(data):
            return None
        found.append(begin)
        position += value >> 1
    return found if position == len(data) else None


LENGTHS = st.lists(st.integers(6, 70) | st.sampled_from([63, 64, 8191, 8192, 20_000]), min_size=1, max_size=9)
SOUND = LENGTHS.map(sound)


@st.composite
def damaged(draw: st.DrawFn) -> Batch:
    data, count = draw(SOUND)
    broken = bytearray(data)
    for position in draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        broken[position] = draw(st.integers(0, 255))
    return bytes(broken[: draw(st.integers(0, len(data)))]), draw(st.integers(-1, 2 * count) | st.just(2**31 - 1))


@settings(max_examples=150, deadline=None)
@given(st.lists(SOUND | SOUND | damaged(), min_size=1, max_size=60))
def test_side_by_side_is_as_alone(batches: list[Batch]) -> None:
    assert places(batches) == [expected(batch) for batch in batches]


def test_batches_of_very_different_size_are_walked_to_their_ends() -> None:
    batches = [sound([10 + number % 60] * (1 + number * number)) for number in range(40)]

    assert places(batches) == [expected(batch) for batch in batches]
    assert all(found is not None for found in places(batches))


def test_a_batch_that_ends_too_early_is_no_neighbours_beginning() -> None:
    """One record fewer than said, and then a byte that tells no length: the lane stands at its end all the same."""
    short = (sound([50] * 9)[0], 10)
    odd = (b"\x01" + bytes(500), 3)

    assert places([short, odd] * 20 + [sound([40] * 10)] * 20) == [None] * 40 + [expected(sound([40] * 10))] * 20


def test_typical_batches_are_not_walked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_alone", lambda *_: pytest.fail("walked alone"))

    assert len(places([sound([100 + number % 50] * 500) for number in range(20)])) == 20


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9000, 9000), min_size=1, max_size=20))
def test_numbers_of_every_length_are_read(numbers: list[int]) -> None:
    encoded = [varint(number) for number in numbers]
    starts = np.cumsum([0, *map(len, encoded)])

    values, behind, broken = Text(b"".join(encoded) + bytes(PADDING_BYTES)).varints(starts[:-1])

    assert (values.tolist(), behind.tolist(), broken.tolist()) == (numbers, starts[1:].tolist(), [])


def test_what_is_too_long_for_a_number_is_told() -> None:
    text = Text(b"\x02" + b"\x80" * 10 + b"\x01" + bytes(PADDING_BYTES))

    values, _, broken = text.varints(np.array([0, 1]))

    assert (values.tolist(), broken.tolist()) == ([1, 0], [1])


@settings(deadline=None)
@given(st.integers(0, 70), st.integers(1, 30), st.none() | st.integers(0, 29))
def test_strings_of_one_length_are_as_any_others(length: int, count: int, null: int | None) -> None:
    texts: list[bytes | None] = [bytes([65 + number]) * length for number in range(count)]
    lengths = np.full(count, length, dtype=np.int64)
    if null is not None and null < count:
        texts[null], lengths[null] = None, -1
    content = b"".join(bytes([65 + number]) * length for number in range(count)) + bytes(PADDING_BYTES)

    column = Blobs(starts=np.arange(count) * length, lengths=lengths).column(Text(content))

    column.validate(full=True)
    assert column.to_pylist() == texts


def test_only_wanted_columns_are_made(handmade: ModuleType) -> None:
    from makewhole.kafka.log.batches import HEADER_BYTES, split
    from makewhole.kafka.log.records import Item, decode

    raw = handmade.plain_batch(0, handmade.rows(3))
    items = [Item(one, raw[one.start + HEADER_BYTES : one.end], 0, 9, False) for one in split(raw)]

    [part] = decode(3, items, ("value", "offset"))

    assert part.columns.to_pydict() == {"offset": [0, 1, 2], "value": [b"value 0", b"value 1", b"value 2"]}
