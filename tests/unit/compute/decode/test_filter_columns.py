"""Check that filters of records that are decoded many at once pass what they pass record by record."""

from dataclasses import replace
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import json_values, record_values
from makewhole.compute.decode.json_lines import UnusualBatch
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.row_filter import filter_terms
from tests.unit.compute.decode.arrow_alone import decode_with_arrow
from tests.unit.compute.decode.test_record_values import DOCUMENTS, VALUES, batch, dumped
from tests.world.examples import examples

pytestmark = pytest.mark.unit

TYPES = {"text": "string", "count": "int", "price": "int", "fine": "int", "flag": "boolean", "at": "timestamp",
         "day": "date", "other": "int"}  # fmt: skip
LITERALS = {
    "text": ["''", "'a'", "'é'", "'0'"],
    "count": ["0", "-1", "'9223372036854775807'"],
    "price": ["0", "1.01", "'-5.05'", "'NaN'"],
    "fine": ["0.000000001", "0", "12.50"],
    "flag": ["true", "false", "'f'"],
    "at": ["'2000-01-01'", "'2013-01-01T05:00:00Z'", "'infinity'", "'-infinity'"],
    "day": ["'2000-01-01'", "'2013-01-01'", "'infinity'"],
    "other": ["1", "1.10", "-0.0"],
}
OPERATORS = [
    "= {}",
    "!= {}",
    "< {}",
    "<= {}",
    "> {}",
    ">= {}",
    "in ({}, {})",
    "not in ({}, {})",
    "is null",
    "is not null",
]
UNORDERED = ("text", "flag")
COMPARED = {"text": "string", "count": "bigint", "price": "decimal(12,2)", "at": "timestamp"}


@st.composite
def conditions(draw: st.DrawFn) -> str:
    terms = []
    for column in draw(st.lists(st.sampled_from([*TYPES]), min_size=1, max_size=2)):
        usable = [text for text in OPERATORS if text[0] not in "<>" or column not in UNORDERED]
        first = draw(st.sampled_from(LITERALS[column]))
        other = draw(st.sampled_from([text for text in LITERALS[column] if (text[0] == "'") is (first[0] == "'")]))
        terms.append(f"{column} " + draw(st.sampled_from(usable)).format(first, other))
    return " and ".join(terms)


def shape(*where: str) -> ValueShape:
    filters = {f"a→{number}": filter_terms(text, TYPES) for number, text in enumerate(where)}
    return ValueShape(key=("$.id",), compare=COMPARED, filters=filters)


@settings(max_examples=examples(400), deadline=None)
@given(VALUES, st.lists(conditions(), min_size=1, max_size=3), st.sampled_from([1, 128]))
@example([b'{"id":"a","at":"infinity"}'] * 3, ["at > '2000-01-01'", "day is null"], 128)
@example([b'{"id":"a","text":"__debezium_unavailable_value"}'] * 3, ["text != 'a'", "text is not null"], 128)
@example([b'{"id":"a","text":"__debezium_unavailable_value  "}'] * 50, ["text != 'a'"], 128)
@example([b'{"id":"a","day":"__debezium_unavailable_value  "}'] * 50, ["day != '2000-01-01'"], 128)
@example([b'{"id":"a","day":"__debezium_unavailable_value"}'] * 3, ["day != '2000-01-01'"], 128)
@example(
    [b'{"id":"a","count":%d}' % n for n in (-1, 0, 1)],
    [f"count {sign} 0" for sign in ("<", "<=", ">", ">=", "=", "!=")],
    128,
)
@example([b'{"id":"a","count":%d}' % n for n in (-1, 0, 1)], ["count in (0, 1)", "count not in (0, 1)"], 128)
@example([b'{"id":"a","price":1.0149}', b'{"id":"a","price":1.01}'], ["price > 1.01", "price = 1.01"], 128)
def test_filters_pass_the_same_records_many_at_once_and_alone(
    values: list[bytes | None], where: list[str], few: int
) -> None:
    filtered = shape(*where)
    alone = [record_values._decode_one_by_one(batch([value]), filtered).row(0) for value in values]
    with mock.patch.object(json_values, "_FEWEST_HALVED", few):
        assert decode_values(batch(values), filtered).rows() == alone
    assert decode_values(batch(values * 5), filtered).rows() == alone * 5


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(DOCUMENTS.map(dumped), min_size=1, max_size=6), conditions())
def test_arrow_agrees_on_all_that_it_accepts(values: list[bytes], where: str) -> None:
    filtered = shape(where)
    try:
        decoded = decode_with_arrow(batch(list(values)), filtered)
    except (UnusualBatch, pa.ArrowInvalid):
        return
    assert decoded.equals(record_values._decode_one_by_one(batch(list(values)), filtered))


def test_typical_records_are_not_decoded_one_by_one_for_a_filter() -> None:
    values: list[bytes | None] = [
        dumped({"id": f"k{n}", "count": n, "text": "ab"[n % 2], "flag": n > 2, "day": f"2013-01-{n + 1:02d}"})
        for n in range(6)
    ]
    filtered = shape("count < 4 and text != 'b'", "day in ('2013-01-01', '2013-01-02')", "flag is null")
    with mock.patch.object(record_values, "_decode_one_by_one") as one_by_one:
        decoded = decode_values(batch(values), filtered)
    assert not one_by_one.called
    assert decoded["excluded_by"].to_list() == [
        ["a→2"],
        ["a→0", "a→2"],
        ["a→1", "a→2"],
        ["a→0", "a→1", "a→2"],
        ["a→0", "a→1", "a→2"],
        ["a→0", "a→1", "a→2"],
    ]
    assert decoded.columns == record_values._decode_one_by_one(batch(values[:1]), filtered).columns


@pytest.mark.parametrize(
    ("where", "types", "compare"),
    [
        ("id = 'a'", {"id": "string"}, COMPARED),
        ("at > '2013-01-01'", TYPES, {"at": "timestamp(3)"}),
        ("count = 5", {}, {}),
        ("text = 'a' and text = 5", {"text": "int"}, {}),
        ("text is null", {"text": "json"}, {}),
    ],
)
def test_what_a_column_of_texts_does_not_say_is_asked_of_each_record(
    where: str, types: dict[str, str], compare: dict[str, str]
) -> None:
    filtered = replace(shape(), compare=compare, filters={"a→b": filter_terms(where, types)})
    assert not record_values.is_columnar(filtered)
