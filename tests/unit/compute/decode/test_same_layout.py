"""Check that values decoded by their shared layout are as if decoded record by record."""

import json
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.json_layout import NoLayout, learn_layout
from makewhole.compute.decode.leaf_columns import LeafRule, ValueColumn, match_layout
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.same_layout import decode_same_layout
from makewhole.compute.decode.value_format import WantedLeaf
from makewhole.native import json_scan
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.json_scan import NULL, NUMBER, TEXT
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

SHAPE = ValueShape(
    key=("$.id",),
    compare={"a.text": "string", "n": "int", "price": "decimal(12,2)", "flag": "boolean", "at": "timestamp"},
    version="$.v",
)

LAYOUT = '{"id":%s,"a":{"text":%s,"skipped":[%s,1]},"n":%s, "price" : %s,"flag":%s,"at":%s,"v":%s}'
GOOD = ['"k"', '"x"', '"y"', "1", "1.50", "true", '"2013-01-01T05:00:00Z"', "7"]
TEXTS = [
    "",
    "a",
    "k" * 12,
    "k" * 13,
    "k" * 15,
    "k" * 16,
    "k" * 63,
    "k" * 64,
    "k" * 200,
    "ü",
    "k" * 11 + "é",
    "\x7f",
    "😀",
]
LEAVES = [
    *(json.dumps(text, ensure_ascii=False) for text in TEXTS),
    *('"\\n"', '"a\\"b"', '"\\u00e9"', '"\\ud800"', '"a\tb"', '"' + "k" * 70 + '\\"}"', '"\x00"', '"2013-01-01"'),
    *("null", "true", "false", "True", "nul", "truefalse", "", " ", "[]", "{}", '{"text":1}', "1}", '"a","b":1', "NaN"),
    *(
        "0",
        "-0",
        "00",
        "01",
        "-",
        "-1",
        "+1",
        "--1",
        "1-",
        "1-1",
        "0-",
        "9" * 18,
        "9" * 19,
        "9" * 31,
        "9" * 32,
        "9" * 40,
    ),
    *(
        "1.",
        ".5",
        "0.5",
        "-0.0",
        "-0.00",
        "-0.01",
        "00.5",
        "1.5",
        "1.50",
        "1.500",
        "1..5",
        "1.5.",
        "1.2.3",
        "1./",
        "1.:",
    ),
    *(
        "1234567.12",
        "12345678.12",
        "123456789012345.6",
        "1e5",
        "1e2",
        "1E2",
        "1.5e-3",
        "-.5",
        "-01",
        "-",
        "-e",
        "0x1",
        "1_0",
        "Infinity",
        "1 ",
        " 1",
    ),
]
LEAF = st.sampled_from([leaf.encode() for leaf in LEAVES]) | st.integers(-(10**20), 10**20).map(lambda n: b"%d" % n)
ODD = LEAF | st.just(b'"\xff"') | st.just(b'"\xc3') | st.text().map(lambda text: json.dumps(text).encode())


@st.composite
def rows(draw: st.DrawFn) -> list[bytes | None]:
    """Draw values of two layouts: most leaves are usual, some rows are no objects."""
    drawn: list[bytes | None] = []
    for _ in range(draw(st.integers(1, 8))):
        leaves = [leaf.encode() for leaf in GOOD]
        for at in draw(st.lists(st.integers(0, len(leaves) - 1), max_size=2)):
            leaves[at] = draw(ODD)
        layout = LAYOUT.encode() if draw(st.booleans()) else LAYOUT.replace(", ", ",").encode()
        drawn.append(draw(st.sampled_from([layout % tuple(leaves)] * 9 + [None])))
    return drawn


WIDE = [
    *(b"\xc2\x80", b"\xdf\xbf", b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf"),
    *(b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xf1\x80\x80\x80"),
    *(b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf"),
    *(b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xfe", b"\x80", b"\xbf"),
    *(b"\xc2", b"\xe2\x82", b"\xf0\x9f\x98", b"\xe2\x82a", b"\xf0\x9f\x98a", b"\xc2a", b"\xe2a\x80", b"\xf0\x9fa\x80"),
]
"""Bytes beyond ASCII: the edges of what is UTF-8; longer than needed, surrogates, above U+10FFFF; cut off."""


ZERO = np.zeros(1, dtype=np.int32)
ROW = rows().map(lambda some: some[0] or b"")


def batch(values: list[bytes | None], column: pa.Array | None = None) -> pa.RecordBatch:  # type: ignore[type-arg]
    empty = pa.array([None] * len(values), pa.binary())
    return pa.RecordBatch.from_pydict(
        {"key": empty, "value": pa.array(values, pa.binary()) if column is None else column, "headers": empty}
    )


def views(values: list[bytes | None], padding: bytes) -> pa.Array:  # type: ignore[type-arg]
    """Return the values as views into one content that has other bytes between them."""
    content, starts = b"", []
    for value in values:
        content += b"\x81\xff\x00"
        starts.append(len(content))
        content += value or b""
    lengths = np.array([-1 if value is None else len(value) for value in values], dtype=np.int32)
    column: pa.Array[Any] = Blobs(starts=np.array(starts, dtype=np.int32), lengths=lengths).views(
        Content(content + padding)
    )
    return column


@settings(max_examples=examples(500), deadline=None)
@given(rows(), st.sampled_from([None, b"", b'0"}\xe2']))
@example([(LAYOUT % tuple(GOOD)).encode(), (LAYOUT % (*GOOD[:7], "7}")).encode()], b"")
def test_values_of_shared_layouts_are_decoded_as_each_alone(values: list[bytes | None], padding: bytes | None) -> None:
    """The column is copied, or of views into any other bytes."""
    alone = [record_values._decode_one_by_one(batch([value]), SHAPE).row(0) for value in values]

    together = decode_values(batch(values, None if padding is None else views(values, padding)), SHAPE)

    assert together.rows() == alone


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("place", range(len(GOOD)))
def test_no_leaf_is_taken_for_what_it_is_not(leaf: str, place: int) -> None:
    usual, odd = (LAYOUT % tuple(GOOD)).encode(), (LAYOUT % (*GOOD[:place], leaf, *GOOD[place + 1 :])).encode()

    together = decode_values(batch([usual, odd, usual]), SHAPE)

    assert together.row(1) == record_values._decode_one_by_one(batch([odd]), SHAPE).row(0)
    assert together.row(0) == together.row(2) == record_values._decode_one_by_one(batch([usual]), SHAPE).row(0)


QUOTED = [
    *(
        "1",
        "-1",
        "0",
        "-0",
        "-0.0",
        "1.5",
        "1.50",
        "1.505",
        "-0.005",
        "99999999999999999999.25",
        "007",
        "00.5",
        "1e3",
        "+1",
    ),
    *(
        "",
        " 1",
        "1 ",
        "1.",
        ".5",
        "NaN",
        "Infinity",
        "null",
        "true",
        "false",
        "True",
        "t",
        "nul",
        "$1,234.50",
        "٣",
        "k",
    ),
]


@pytest.mark.parametrize("quoted", QUOTED)
def test_what_is_in_quotation_marks_is_as_alone(quoted: str) -> None:
    """Put it beside usual ones in every column, so that a layout of strings is followed."""
    leaves = ['"k"', '"x"', '"y"', '"1"', '"1.50"', '"true"', '"2013-01-01T05:00:00Z"', '"7"']
    values = [(LAYOUT % tuple(leaves)).encode()]
    for place in range(len(leaves)):
        changed = [*leaves[:place], json.dumps(quoted, ensure_ascii=False), *leaves[place + 1 :]]
        values.append((LAYOUT % tuple(changed)).encode())
    records = batch([value for value in values for _ in range(2)])

    parts, _ = decode_same_layout(records.column("value"), record_values._wanted(SHAPE))

    assert 0 in parts[0][0]
    assert decode_values(records, SHAPE).rows() == record_values._decode_one_by_one(records, SHAPE).rows()


def test_records_as_programs_write_them_are_decoded_by_layout() -> None:
    """Fields that are null or absent at times, wide and long texts, numbers of any length: no record is left over."""
    values: list[bytes | None] = []
    for number in range(300):
        row = {"id": f"k{number}", "a": {"text": [None, "ü" * number, "x" * number][number % 3]}, "n": number**3}
        row |= {"price": number / 4, "flag": number % 2 == 0, "v": number} if number % 5 else {"other": [1.5, "y"]}
        values.append(json.dumps(row, ensure_ascii=False).encode())

    with mock.patch.object(json_values, "_read_parts") as read_parts:
        decoded = decode_values(batch(values), SHAPE)

    assert not read_parts.called
    assert decoded.rows() == record_values._decode_one_by_one(batch(values), SHAPE).rows()


def test_numbers_with_a_fraction_are_read_by_their_value_where_an_integer_is_declared() -> None:
    """As amounts are that a sum of another type is made of: no record is left over, and none is rounded."""
    numbers = ["7", "7.0", "0.10", "-100.00", "1.005", "0.0", f"{10**20}.5"]
    wanted = {"c:n": WantedLeaf(("n",), "bigint")}
    values = pa.array([f'{{"n":{number}}}'.encode() for number in numbers], pa.binary())
    [(rows, frame)], left = decode_same_layout(values, wanted)
    assert (rows.tolist(), left.tolist()) == (list(range(7)), [])
    assert frame["c:n"].to_list() == ["7", "7", "0.1", "-100", "1.005", "0", f"{10**20}.5"]
    assert frame["c:n"].to_list() == [canonical_text(Decimal(number), "bigint") for number in numbers]


def test_one_odd_record_does_not_keep_the_others_from_being_decoded_by_layout() -> None:
    usual = (LAYOUT % tuple(GOOD)).encode()

    parts, left = decode_same_layout(pa.array([b"{", *[usual] * 9], pa.binary()), record_values._wanted(SHAPE))

    assert left.tolist() == [0]
    assert [rows.tolist() for rows, _ in parts] == [list(range(1, 10))]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[1]",
        b'{"a":"\\n"}',
        b'{"a":1,"a":2}',
        b'\n{"a":1}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":[' + b"1," * 200 + b"1]}",
    ],
)
def test_some_objects_have_no_layout(value: bytes) -> None:
    with pytest.raises(NoLayout):
        learn_layout(value)


def test_a_layout_is_the_fixed_text_around_the_leaves() -> None:
    layout = learn_layout(b'{"a": {"b":"x","c":[1,{"d":true}]} ,"e":{},"f":-1.5}')

    assert layout.texts == (b'{"a": {"b":"', b'","c":[', b',{"d":', b'}]} ,"e":{},"f":', b"}")
    assert [(leaf.is_text, leaf.size_bytes) for leaf in layout.leaves] == [
        (True, 1),
        (False, 1),
        (False, 4),
        (False, 4),
    ]
    assert dict(layout.leaf_numbers) == {("a", "b"): 0, ("f",): 3}
    assert layout.branches == {(), ("a",), ("a", "c"), ("e",)}


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_strings_are_taken_if_and_only_if_python_takes_them_for_utf8(wide: bytes, place: int) -> None:
    """As a key, a compared text and an unused one; alone, among other characters and at the end."""
    usual = (LAYOUT % tuple(GOOD)).encode()
    leaves = [leaf.encode() for leaf in GOOD]
    texts = [wide, b"a" + wide + b"b", "ü".encode() + wide]
    odd = [LAYOUT.encode() % (*leaves[:place], b'"%s"' % text, *leaves[place + 1 :]) for text in texts]

    parts, left = decode_same_layout(pa.array([usual, *odd, usual], pa.binary()), record_values._wanted(SHAPE))

    is_utf8 = wide.decode(errors="ignore").encode() == wide
    assert sorted(row for rows, _ in parts for row in rows.tolist()) == ([0, 1, 2, 3, 4] if is_utf8 else [0, 4])
    assert left.tolist() == ([] if is_utf8 else [1, 2, 3])
    together = decode_values(batch([usual, *odd]), SHAPE)
    assert together.rows()[1:] == [record_values._decode_one_by_one(batch([value]), SHAPE).row(0) for value in odd]


@pytest.mark.parametrize("place", [0, 1, 6, 7, 8, 14, 15])
def test_a_byte_in_a_string_is_taken_if_and_only_if_python_takes_it(place: int) -> None:
    """At each place among those that are looked at together, behind one of the least and of the greatest."""
    texts = [b" ~" * 8 for _ in range(256)]
    texts = [text[:place] + bytes([byte]) + text[place + 1 :] for byte, text in enumerate(texts)]
    values = [b'{"id":"%s","n":1}' % text for text in texts]

    parts, _ = decode_same_layout(
        pa.array([b'{"id":"k","n":1}', *values], pa.binary()),
        record_values._wanted(ValueShape(key=("$.id",), compare={})),
    )

    taken = [byte for byte in range(128) if byte >= 32 and byte not in b'"\\']
    assert [row - 1 for rows, _ in parts for row in rows.tolist()] == [-1, *taken]


@pytest.mark.parametrize("place", [3, 4, 5, 7])
def test_a_value_is_matched_to_its_own_end_and_no_further(place: int) -> None:
    """A value that is cut anywhere is no value, even with its rest right behind it in the content."""
    usual = (LAYOUT % (*GOOD[:place], "null", *GOOD[place + 1 :])).encode()
    for end in range(1, len(usual)):
        column = pa.array([usual, usual[:end], usual[end:], usual], pa.binary())

        [(rows, _)], left = decode_same_layout(column, record_values._wanted(SHAPE))

        assert (rows.tolist(), left.tolist()) == ([0, 3], [1, 2])


@settings(max_examples=examples(300), deadline=None)
@given(
    values=st.lists(st.binary(max_size=40) | st.sampled_from(WIDE) | ROW, max_size=6),
    guard=st.binary(min_size=16, max_size=16),
    places=st.lists(st.tuples(st.integers(-9, 400), st.integers(-9, 400)), max_size=4),
)
def test_nothing_outside_the_content_is_read(values: list[bytes], guard: bytes, places: list[tuple[int, int]]) -> None:
    """For any bytes and any places of values, every index is within bounds, and the bytes around change nothing."""
    usual = (LAYOUT % tuple(GOOD)).encode()
    ends = np.cumsum([len(usual), *map(len, values)])
    spans = [(int(end - size), size) for end, size in zip(ends, [len(usual), *map(len, values)], strict=True)] + places
    content = usual + b"".join(values)

    def matched(around: bytes) -> list[object]:
        whole = np.frombuffer(around + content + around, dtype=np.uint8)
        starts, lengths = np.array(spans, dtype=np.int32).T.copy()
        odd = ValueColumn(content=Content(b""), blobs=Blobs(starts=starts, lengths=lengths))
        odd.content.bytes = whole[len(around) : len(whole) - len(around)]
        answer = match_layout(
            learn_layout(usual), odd, np.arange(len(spans)), {0: LeafRule(TEXT | NUMBER), 3: LeafRule(NUMBER | NULL)}
        )
        blobs = [leaf.blobs for leaf in answer.leaves.values()]
        return [answer.rows.tolist(), [(blob.starts.tolist(), blob.lengths.tolist()) for blob in blobs]]

    with bounds_checked(json_scan):
        alone = matched(b"")
    assert matched(guard) == matched(bytes(16)) == matched(usual[-16:]) == alone


@pytest.mark.parametrize("leaf", [*(leaf.encode() for leaf in LEAVES), *(b'"%s"' % wide for wide in WIDE)])
def test_a_value_that_ends_with_the_content_is_read_no_further(leaf: bytes) -> None:
    """For a cut at every position and with any leaf, as the content has no bytes behind it."""
    usual, odd = b'{"a":%s,"id":"k"}', b'{"a":%s' % leaf
    samples = [usual % b'"x"', usual % b"1.5"]
    for sample in samples:
        for end in range(len(odd) + 1):
            values = ValueColumn(
                content=Content(odd[:end]), blobs=Blobs(starts=ZERO, lengths=np.array([end], dtype=np.int32))
            )
            with bounds_checked(json_scan):
                assert not len(match_layout(learn_layout(sample), values, np.arange(1), {}).rows)
